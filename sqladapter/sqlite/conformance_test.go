package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	chattest.Run(t, chattest.Config{Search: true, LongChain: longChain, New: func(t testing.TB) chattest.OpenFunc {
		path := filepath.Join(t.TempDir(), "a ?#%41 file.db")
		return opener(path)
	}})
}

func opener(path string) chattest.OpenFunc {
	return func(ctx context.Context) (chat.Store, func() error, error) {
		db, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			return nil, nil, err
		}
		return db.Chats(), db.Close, nil
	}
}
