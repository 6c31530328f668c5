package chat_test

import (
	"context"
	"testing"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
)

func TestConformance(t *testing.T) {
	chattest.Run(t, chattest.Config{LongChain: 10_500, New: func(t testing.TB) chattest.OpenFunc {
		dir := t.TempDir()
		return func(ctx context.Context) (chat.Store, func() error, error) {
			s, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
			if err != nil {
				return nil, nil, err
			}
			return chat.On(s), s.Close, nil
		}
	}})
}
