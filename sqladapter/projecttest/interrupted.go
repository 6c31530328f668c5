package projecttest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// testRewoundAfterInterruption interrupts a projection that has written some of many new messages. Then the context
// is rewound: to a message after those of the last complete projection, and before others that were written.
func testRewoundAfterInterruption(t *testing.T, s *suite) {
	for _, complete := range []int{0, 1, 5} { // messages before the complete projection
		store, database := newStore(t), s.New(t)
		db := s.open(t, database)
		defer db.Close()
		s.project(t, store, db)
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "chat"})
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		for i := range 40 {
			if i == complete && i > 0 {
				s.project(t, store, db)
			}
			_, err = main.Extend(bg, lineage.User(fmt.Sprint("message ", i)))
			require.NoError(t, err)
		}
		ctx, interrupt := context.WithCancel(bg)
		p := &project.Projector{Store: store, DB: db, BatchRows: 1, Progress: func(r project.Report) {
			if r.Added >= 20 {
				interrupt()
			}
		}}
		_, err = p.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Greater(t, count(t, database, `SELECT COUNT(*) FROM "messages"`), 19)
		entries, err := main.All(bg)
		require.NoError(t, err)
		require.NoError(t, main.MoveTo(bg, entries[9].Span, "rewind"))
		s.project(t, store, db)
		require.Equal(t, 10, count(t, database, `SELECT COUNT(*) FROM "messages"`))
		requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	}
}

// testErasedBefore projects a store in which metadata was erased before. When it is stored again, the rows of the
// messages have it.
func testErasedBefore(t *testing.T, s *suite) {
	for _, chatsOnly := range []bool{false, true} {
		store, database := newStore(t), s.New(t)
		db := s.open(t, database)
		defer db.Close()
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "chat"})
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		const metadata = `{"type":"of a wombat"}`
		_, err = main.Extend(bg, lineage.Item{Role: "user", Type: content.TypeJSON, SourceID: "m", Metadata: []byte(metadata), Body: []byte(`"three"`)})
		require.NoError(t, err)
		require.NoError(t, store.Erase(bg, content.Sum([]byte(metadata))))
		p := &project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly}
		_, err = p.Run(bg)
		require.NoError(t, err)
		_, _, err = store.Put(bg, strings.NewReader(metadata), lineage.BlockOptions{Type: content.TypeJSON})
		require.NoError(t, err)
		_, err = p.Run(bg)
		require.NoError(t, err)
		m, err := sqlchat.On(db).Message(bg, "chat", "m")
		require.NoError(t, err)
		require.Equal(t, "of a wombat", m.Type)
		requireSame(t, s.rebuilt(t, store, chatsOnly), dump(t, database, chatsOnly))
	}
}
