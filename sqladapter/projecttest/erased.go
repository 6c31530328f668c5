package projecttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// testErasedPieces erases a part of a message and its metadata: no row has them any more, the
// message has a marker, and the rest is found.
func testErasedPieces(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "c", UserID: "ann", Keep: true})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.Item{
		Role: "user", Type: content.TypeJSON, SourceID: "m", Metadata: []byte(`{"title":"wombat"}`),
		Body: []byte(`{"role":"user","content":[{"type":"text","text":"quagga one"},{"type":"text","text":"zebra two"},{"type":"file","filename":"wombat.pdf","file_data":"AAAA"}]}`),
	})
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.Item{Role: "user", Type: content.TypeJSON, SourceID: "typed", Metadata: []byte(`{"type":"of a wombat"}`), Body: []byte(`"three"`)})
	require.NoError(t, err)
	s.project(t, store, db)
	everything := func() string {
		var all strings.Builder
		for _, rows := range dump(t, database, false) {
			for _, row := range rows {
				all.WriteString(row)
			}
		}
		return strings.ToLower(all.String())
	}
	hex := func(text string) string { return fmt.Sprintf("%x", text) }
	for _, text := range []string{"quagga", hex("quagga"), hex(`{"title":"wombat"}`), hex("wombat.pdf")} {
		require.Contains(t, everything(), text)
	}
	entries, err := main.All(bg)
	require.NoError(t, err)
	for _, text := range []string{"quagga one", "wombat.pdf", `{"title":"wombat"}`} {
		id := content.Sum([]byte(text))
		require.Contains(t, entries[0].Contents(), id)
		require.NoError(t, store.Erase(bg, id))
	}
	chats := s.open(t, s.New(t))
	defer chats.Close()
	_, err = (&project.Projector{Store: store, DB: chats, ChatsOnly: true}).Run(bg)
	require.NoError(t, err)
	typed, err := sqlchat.On(db).Message(bg, "c", "typed")
	require.NoError(t, err)
	require.Equal(t, "of a wombat", typed.Type)
	require.NoError(t, store.Erase(bg, content.Sum([]byte(`{"type":"of a wombat"}`))))
	before := counts(t, store)
	for _, behind := range []*sqladapter.DB{db, chats} {
		_, err = importing.Run(bg, behind, store, importing.Options{})
		require.NoError(t, err)
	}
	require.Equal(t, before, counts(t, store), "what was erased does not come back from a database that is behind")
	s.project(t, store, db)
	for _, text := range []string{"quagga", "wombat"} {
		require.NotContains(t, everything(), text)
		require.NotContains(t, everything(), hex(text))
	}
	require.Equal(t, 4, count(t, database, `SELECT COUNT(*) FROM "content_blocks" WHERE "erased" = 1`))
	typed, err = sqlchat.On(db).Message(bg, "c", "typed")
	require.NoError(t, err)
	require.Equal(t, chat.TypeMessage, typed.Type)
	m, err := sqlchat.On(db).Message(bg, "c", "m")
	require.NoError(t, err)
	require.JSONEq(t, `{"role":"user","content":[{"type":"text","text":"[erased]"},{"type":"text","text":"zebra two"},{"type":"file","filename":"[erased]","file_data":"AAAA"}]}`, string(m.Data))
	found, err := sqlchat.On(db).SearchMessages(bg, "c", "zebra", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	require.Empty(t, differences(t, store, db))

	other := newStore(t)
	s.doImport(t, db, other)
	got, err := chat.On(other).Message(bg, "c", "m")
	require.NoError(t, err)
	require.JSONEq(t, string(m.Data), string(got.Data))
	_, _, err = other.Put(bg, strings.NewReader("quagga one"), lineage.BlockOptions{Type: content.TypeText})
	require.NoError(t, err)
	got, err = chat.On(other).Message(bg, "c", "m")
	require.NoError(t, err)
	require.Contains(t, string(got.Data), "quagga one", "the message knows what it is made of")
}

// testImportDamaged imports messages whose other rows were changed: the data column wins.
func testImportDamaged(t *testing.T, s *suite) {
	store := newStore(t)
	converse(t, chat.On(store), "c", say("m1", "one"), say("m2", "two"))
	for _, damage := range []string{
		`UPDATE message_usages SET opaque = 1`, `UPDATE message_usages SET piece = 'song'`, `UPDATE message_usages SET kind = 'part'`,
		`UPDATE message_usages SET form_id = NULL`, `UPDATE message_usages SET extras = NULL`, `UPDATE message_usages SET content_id = NULL`,
		`UPDATE message_usages SET form_id = content_id`, `UPDATE message_usages SET lookup = 0`, `UPDATE message_usages SET place = place + 7`,
		`UPDATE message_usages SET source_id = 'm2'`, `UPDATE message_usages SET metadata_id = content_id, metadata = 'x'`,
		`UPDATE content_blocks SET body = (SELECT body FROM content_blocks ORDER BY size DESC LIMIT 1)`, `UPDATE content_blocks SET erased = 1`, `DELETE FROM message_usages`,
		`UPDATE lineage_reach SET own = 0`, `DELETE FROM lineage_scopes`,
	} {
		database := s.New(t)
		db := s.open(t, database)
		s.project(t, store, db)
		exec(t, database, "%s", damage)
		to := newStore(t)
		_, err := importing.Run(bg, db, to, importing.Options{})
		if err != nil {
			require.ErrorIs(t, err, sqladapter.ErrCorrupt, damage)
		} else {
			want, got := chainOf(t, sqlchat.On(db), "c", "main"), chainOf(t, chat.On(to), "c", "main")
			require.Len(t, got, len(want), damage)
			for i := range want {
				id, data, _ := strings.Cut(want[i], " ")
				gotID, gotData, _ := strings.Cut(got[i], " ")
				require.Equal(t, id, gotID, damage)
				require.JSONEq(t, data, gotData, damage)
			}
			for _, e := range readable(t, to) {
				_, err := to.Original(bg, e)
				require.NoError(t, err, damage)
			}
		}
		require.NoError(t, db.Close())
	}
}

// readable returns the entries of the chat "c".
func readable(t *testing.T, store *lineage.Store) []*lineage.Entry {
	thread, err := store.FindThread(bg, "c")
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	entries, err := main.All(bg)
	require.NoError(t, err)
	return entries
}

// counts returns the counts of a store.
func counts(t *testing.T, store *lineage.Store) backend.Stats {
	stats, err := store.Stats(bg)
	require.NoError(t, err)
	return stats.Counts()
}
