package conversation_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/conversation"
	"github.com/lineage-store/lineage/structure"
)

// No operation on one branch looks at all of them.
//
//test:norace
func TestOperationsDoNotGrow(t *testing.T) {
	ctx := context.Background()
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer store.Close()
		counting := backendtest.NewCounting(write.Of(store).Engine())
		c, err := conversation.Open(ctx, lineage.New(counting), "session", conversation.Options{})
		require.NoError(t, err)
		require.NoError(t, c.AddMessage(ctx, conversation.Message{Role: "user", Content: "one"}))
		main, err := c.Thread().Active(ctx)
		require.NoError(t, err)
		var records []structure.Record
		for i := range n {
			id := fmt.Sprint("idea-", i+1)
			if i == 0 {
				id = "idea"
			}
			branch := &structure.Context{ID: structure.NewID[lineage.ContextID](), Thread: c.Thread().ID(), Parent: main.ID()}
			records = append(records, branch, &structure.Branch{Thread: branch.Thread, Name: id, Context: branch.ID})
		}
		_, err = write.Of(store).Engine().Apply(ctx, &structure.Commit{Records: records}, backend.Options{})
		require.NoError(t, err)
		costs := make(map[string]int64)
		for _, o := range []struct {
			name string
			do   func() error
		}{
			{"open", func() error {
				_, err := conversation.Open(ctx, lineage.New(counting), "session", conversation.Options{})
				return err
			}},
			{"add", func() error { return c.AddMessage(ctx, conversation.Message{Role: "user", Content: "two"}) }},
			{"create", func() error {
				_, err := c.CreateBranch(ctx, "x", "x", &conversation.From{Branch: conversation.Main})
				return err
			}},
			{"create empty", func() error { _, err := c.CreateBranch(ctx, "y", "y", nil); return err }},
			{"branch", func() error { _, err := c.Branch(ctx, "x"); return err }},
			{"checkout", func() error { _, err := c.Checkout(ctx, "x"); return err }},
			{"current", func() error { _, err := c.CurrentBranch(ctx); return err }},
			{"fork", func() error { _, err := c.Fork(ctx, "Idea"); return err }},
			{"add to the fork", func() error { return c.AddMessage(ctx, conversation.Message{Role: "user", Content: "three"}) }},
			{"checkout main", func() error { _, err := c.Checkout(ctx, conversation.Main); return err }},
			{"merge", func() error { _, err := c.Merge(ctx, "x", conversation.Append); return err }},
			{"rename", func() error { return c.RenameBranch(ctx, "x", "another name") }},
			{"history", func() error { _, err := c.History(ctx, "x"); return err }},
			{"delete", func() error { return c.DeleteBranch(ctx, "x") }},
		} {
			costs[o.name] = counting.Cost(func() { require.NoError(t, o.do(), o.name) })
		}
		return costs
	})
}
