package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// TestGoingBack runs Aside, Rewind and Restore in a short and in a long chat. The statements are
// the same, and none reads the chain.
func TestGoingBack(t *testing.T) {
	traced := map[int][]string{}
	for _, messages := range []int{10, 2500} {
		var statements []string
		db, err := sqlite.Open(background, filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{Trace: func(text string) { statements = append(statements, text) }})
		require.NoError(t, err)
		defer db.Close()
		e, err := engine.Open(background, sqlchat.On(db), engine.Options{ChatID: "c", UserID: "ada"})
		require.NoError(t, err)
		for i := range messages {
			require.NoError(t, e.Set(engine.User(fmt.Sprint("message ", i))))
		}
		head, err := e.Save(background)
		require.NoError(t, err)
		_, err = e.Checkpoint(background, "here")
		require.NoError(t, err)
		statements = nil
		aside, err := e.Aside(background)
		require.NoError(t, err)
		require.Equal(t, messages, aside.MessageCount)
		rewound, err := e.Rewind(background, string(head))
		require.NoError(t, err)
		require.Equal(t, messages, rewound.MessageCount)
		_, err = e.Restore(background, "here")
		require.NoError(t, err)
		traced[messages] = statements
	}
	require.Equal(t, traced[10], traced[2500])
	for _, text := range traced[10] {
		require.NotContains(t, text, "RECURSIVE")
	}
}
