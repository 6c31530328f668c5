package importer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// branchy returns a conversation with a chain of messages and a leaf on each.
func branchy(n int) *archive.Conversation {
	c := &archive.Conversation{SourceID: "branchy"}
	parent := ""
	for i := range n {
		id := fmt.Sprint("m", i)
		c.Nodes = append(c.Nodes,
			archive.Node{ID: id, Parent: parent, Root: parent == "", Role: "user", Body: []byte(id)},
			archive.Node{ID: "leaf" + id, Parent: id, Role: "assistant", Body: []byte("leaf of " + id)})
		parent = id
	}
	return c
}

func BenchmarkImportBranchy(b *testing.B) {
	for _, n := range []int{100, 1_000, campaign.BenchMessages(b, 10_000)} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s, err := lineage.Open(context.Background(), b.TempDir(), lineage.Options{Durability: lineage.Normal})
				require.NoError(b, err)
				importMade(b, s, []*archive.Conversation{branchy(n)})
				require.NoError(b, s.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/leaf")
		})
	}
}

// The cost of importing such a conversation, once or again, grows linearly.
func TestImportOfBranchesDoesNotGrow(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store, err := lineage.Open(context.Background(), t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer store.Close()
		counting := backendtest.NewCounting(write.Of(store).Engine())
		s := lineage.New(counting)
		costs := make(map[string]int64)
		each := func(name string, c *archive.Conversation) {
			costs[name] = counting.Cost(func() { importMade(t, s, []*archive.Conversation{c}) }) / int64(n)
		}
		each("first", branchy(n))
		each("again", branchy(n))
		more := branchy(n)
		for i := range n {
			more.Nodes = append(more.Nodes, archive.Node{ID: fmt.Sprint("more", i), Parent: fmt.Sprint("leafm", i), Role: "user", Body: []byte("more")})
		}
		each("more", more)
		shared := branchy(n)
		shared.SourceID = "another"
		each("shared", shared)
		thread, err := store.FindThread(context.Background(), "branchy")
		require.NoError(t, err)
		branches, err := thread.Branches(context.Background())
		require.NoError(t, err)
		require.Equal(t, n, len(branches))
		return costs
	})
}
