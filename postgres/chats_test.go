//test:long
//test:race

package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
)

// TestChats runs the suite for chat stores.
//
//test:norace
func TestChats(t *testing.T) {
	campaign.Long(t)
	pool := newPool(t, pgtest.DSN(t), nil)
	var stores atomic.Int64
	run := chattest.RunConcurrent // random calls do all operations
	if campaign.Runs() {
		run = chattest.Run
	}
	run(t, chattest.Config{LongChain: 2000, New: func(t testing.TB) chattest.OpenFunc {
		o := Options{Store: fmt.Sprint("store ", stores.Add(1)), Unsafe: true, Durability: backend.Normal}
		return func(ctx context.Context) (chat.Store, func() error, error) {
			e, err := New(ctx, pool, o)
			if err != nil {
				return nil, nil, err
			}
			s := lineage.New(e)
			return chattest.Repeating(chat.On(s), s), s.Close, nil
		}
	}})
}
