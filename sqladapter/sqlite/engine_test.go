package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine/enginetest"
)

func TestEngine(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, enginetest.Config{New: func(t testing.TB) chat.Store {
		s, stop, err := opener(filepath.Join(t.TempDir(), "chats.db"))(context.Background())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, stop()) })
		return s
	}})
}
