package projecttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// testNUL projects texts with NUL, and texts that look like what a database has instead of it, and imports them.
// Nothing is lost. A chat refuses a title with NUL, wherever it is.
func testNUL(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	odd := []string{"\x00", "a\x00b", "\ufdd0", "\ufdd00000", "\ufdd0fdd0\x00", `\u0000`}
	for i, text := range odd {
		prompt, model := "prompt "+text, "model "+text
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{
			SourceID: fmt.Sprint("t", i), UserID: "ada", Title: strings.ReplaceAll(text, "\x00", ""), Metadata: []byte(fmt.Sprintf(`{"t":%q,"a":"\u0000","b":"\ud83d"}`, "\ufdd0"+fmt.Sprint(i))),
			Overrides: lineage.Overrides{SystemPrompt: &prompt, Model: &model, JSON: []byte(`{"stop":"\u0000"}`)},
		})
		require.NoError(t, err)
		require.NoError(t, store.Values(lineage.Owner{Thread: thread.ID()}).Set(bg, "key", []byte(`"\u0000 \ufdd0"`)))
		c, err := thread.Active(bg)
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.User(text), lineage.Assistant("after "+text),
			lineage.Item{Role: "user", Type: "application/json", Body: []byte(`{"a":"\u0000 \ud83d\ude00 \ud83d \\u0000 \ude00 ` + "\ufdd0" + `"}`)},
			lineage.Item{Kind: lineage.Asset, Filename: "bytes.bin", Body: []byte("asset " + text), Type: "text/plain"})
		require.NoError(t, err)
		_, err = c.Summarize(bg, shortener{text}, lineage.SummarizeOptions{Whole: true})
		require.NoError(t, err)
	}
	s.project(t, store, db)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	requireChats(t, store, db)
	require.Empty(t, differences(t, store, db))
	to := newStore(t)
	_, err := importing.Run(bg, db, to, importing.Options{Problem: func(id string, err error) { t.Errorf("%s: %v", id, err) }})
	require.NoError(t, err)
	require.Equal(t, told(t, store, true), told(t, to, true))
	found, err := sqlchat.On(db).SearchMessages(bg, "t1", "after", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
}
