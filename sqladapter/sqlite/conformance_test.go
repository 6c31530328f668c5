package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// TestChats runs the suite for chat stores.
//
// feature: storage/sqlite
func TestChats(t *testing.T) {
	t.Parallel()
	chattest.RunSequential(t, inFile)
}

// feature: storage/memory
func TestChatsInMemory(t *testing.T) {
	campaign.Long(t)
	t.Parallel()
	chattest.RunSequential(t, inMemory)
}

// TestChatsSharedPool uses a plain pool of the caller, whose transactions begin without the write
// lock.
func TestChatsSharedPool(t *testing.T) {
	campaign.Long(t)
	t.Parallel()
	chattest.RunSequential(t, inSharedPool)
}

// TestConformance runs what the suite does from many goroutines, and random calls, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	for name, config := range map[string]chattest.Config{"file": inFile, "memory": inMemory, "shared pool": inSharedPool} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chattest.RunConcurrent(t, config)
		})
	}
}

var (
	inFile = chattest.Config{Search: true, LongChain: 10_500, New: func(t testing.TB) chattest.OpenFunc {
		return opener(filepath.Join(t.TempDir(), "a ?#%41 file.db"))
	}}
	inMemory = chattest.Config{Search: true, LongChain: 2000, Forgets: true, New: func(testing.TB) chattest.OpenFunc {
		return opener(sqlite.Memory)
	}}
	inSharedPool = chattest.Config{Search: true, LongChain: 2000, New: func(t testing.TB) chattest.OpenFunc {
		pool, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(t.TempDir(), "chats.db"))+"?_pragma=synchronous(OFF)")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, pool.Close()) })
		return func(ctx context.Context) (chat.Store, func() error, error) {
			db, err := sqlite.New(ctx, pool, sqladapter.Options{})
			if err != nil {
				return nil, nil, err
			}
			return sqlchat.On(db), db.Close, nil
		}
	}}
)

func opener(path string) chattest.OpenFunc {
	return func(ctx context.Context) (chat.Store, func() error, error) {
		db, err := sqlite.Open(ctx, path, sqladapter.Options{})
		if err != nil {
			return nil, nil, err
		}
		return sqlchat.On(db), db.Close, nil
	}
}
