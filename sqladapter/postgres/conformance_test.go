package postgres_test

import (
	"context"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// TestChats runs the suite for chat stores.
//
// feature: storage/postgres
func TestChats(t *testing.T) { chats(t, chattest.RunSequential) }

// TestConformance runs what the suite does from many goroutines, and random calls, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	chats(t, chattest.RunConcurrent)
}

func chats(t *testing.T, run func(*testing.T, chattest.Config)) {
	run(t, chattest.Config{Search: true, Reformats: true, MaxID: 1300, LongChain: 10_500, New: func(t testing.TB) chattest.OpenFunc {
		dsn := pgtest.DSN(t)
		return func(ctx context.Context) (chat.Store, func() error, error) {
			db, err := postgres.Open(ctx, dsn, sqladapter.Options{})
			if err != nil {
				return nil, nil, err
			}
			return sqlchat.On(db), db.Close, nil
		}
	}})
}
