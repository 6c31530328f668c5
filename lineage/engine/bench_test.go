package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// openChat opens a chat with n messages.
func openChat(b *testing.B, messages int) *engine.Engine {
	ctx := context.Background()
	e, err := engine.Open(ctx, chat.On(storetest.New(b)), engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(b, err)
	for i := range messages {
		require.NoError(b, e.Set(engine.User(fmt.Sprint("message ", i))))
		if i%10 == 9 {
			_, err := e.Save(ctx)
			require.NoError(b, err)
		}
	}
	return e
}

// The cost of an operation must not grow with the history.
func Benchmark(b *testing.B) {
	ctx := context.Background()
	for _, messages := range []int{10, 10000} {
		b.Run(fmt.Sprintf("save/%d", messages), func(b *testing.B) {
			e := openChat(b, messages)
			for b.Loop() {
				require.NoError(b, e.Set(engine.User("q"), engine.AssistantText("a", "")))
				_, err := e.Save(ctx)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("rewind/%d", messages), func(b *testing.B) {
			e := openChat(b, messages)
			head := string(e.Head())
			for b.Loop() {
				_, err := e.Rewind(ctx, head)
				require.NoError(b, err)
				require.NoError(b, e.SwitchBranch(ctx, chat.MainBranch))
			}
		})
	}
}
