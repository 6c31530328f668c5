package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// No operation reads all branches of the chat.
//
//test:norace
func TestOperationsDoNotGrow(t *testing.T) {
	ctx := context.Background()
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer store.Close()
		counting := backendtest.NewCounting(write.Of(store).Engine())
		chats := chat.On(lineage.New(counting))
		options := engine.Options{ChatID: "c", UserID: "ada"}
		e, err := engine.Open(ctx, chats, options)
		require.NoError(t, err)
		require.NoError(t, e.Set(engine.User("one")))
		first, err := e.Save(ctx)
		require.NoError(t, err)
		thread, err := store.FindThread(ctx, "c")
		require.NoError(t, err)
		for i := range n {
			_, err := thread.CreateBranch(ctx, fmt.Sprintf("main-v%d", i+2), lineage.BranchOptions{})
			require.NoError(t, err)
		}
		costs := make(map[string]int64)
		for _, o := range []struct {
			name string
			do   func() error
		}{
			{"open", func() error { _, err := engine.Open(ctx, chats, options); return err }},
			{"save", func() error {
				require.NoError(t, e.Set(engine.User("two"), engine.AssistantText("three", "")))
				_, err := e.Save(ctx)
				return err
			}},
			{"resolve", func() error { _, err := e.Resolve(ctx, engine.ResolveOptions{}); return err }},
			{"aside", func() error { _, err := e.Aside(ctx); return err }},
			{"checkpoint", func() error { _, err := e.Checkpoint(ctx, "here"); return err }},
			{"rewind", func() error { _, err := e.Rewind(ctx, string(first)); return err }},
			{"switch", func() error { return e.SwitchBranch(ctx, "main") }},
			{"restore", func() error { _, err := e.Restore(ctx, "here"); return err }},
			{"new version", func() error {
				require.NoError(t, e.SwitchBranch(ctx, "main"))
				better, err := engine.User("one, said better").WithID(string(first))
				require.NoError(t, err)
				require.NoError(t, e.Set(better))
				_, err = e.Save(ctx)
				return err
			}},
			{"chat", func() error { _, err := e.Chat(ctx); return err }},
			{"delete a checkpoint", func() error { return e.DeleteCheckpoint(ctx, "here") }},
		} {
			costs[o.name] = counting.Cost(func() { require.NoError(t, o.do(), o.name) })
		}
		return costs
	})
}

// What the last messages cost does not depend on those before them, also where one of them is set again.
//
//test:norace
func TestLastDoesNotGrow(t *testing.T) {
	ctx := context.Background()
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer store.Close()
		counting := backendtest.NewCounting(write.Of(store).Engine())
		chats := chat.On(lineage.New(counting))
		e, err := engine.Open(ctx, chats, engine.Options{ChatID: "c", UserID: "ada"})
		require.NoError(t, err)
		for i := range 10 * n {
			require.NoError(t, e.Set(engine.AssistantText("words", fmt.Sprint(i))))
		}
		_, err = e.Save(ctx)
		require.NoError(t, err)
		costs := make(map[string]int64)
		for name, o := range map[string]engine.ResolveOptions{"last": {Last: 10}, "budget": {Budget: 100}} {
			costs[name] = counting.Cost(func() {
				r, err := e.Resolve(ctx, o)
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(r.Messages), 10)
				require.True(t, r.Omitted)
			})
		}
		require.NoError(t, e.Set(engine.AssistantText("words", fmt.Sprint(10*n-3))))
		costs["again"] = counting.Cost(func() {
			r, err := e.Resolve(ctx, engine.ResolveOptions{Last: 10})
			require.NoError(t, err)
			require.Len(t, r.Messages, 10)
		})
		return costs
	})
}
