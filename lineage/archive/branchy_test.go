package archive_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// branchy is a conversation of a chain of messages with a leaf on each.
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
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s, err := lineage.Open(context.Background(), b.TempDir(), &lineage.Options{Durability: lineage.Normal})
				require.NoError(b, err)
				importMade(b, s, []*archive.Conversation{branchy(n)})
				require.NoError(b, s.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/leaf")
		})
	}
}
