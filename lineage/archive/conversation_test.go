//test:race

package archive

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// sized returns nodes with bodies of a size.
func sized(n, size int, aside string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for range n {
			if !yield(Node{Role: "user", Body: make([]byte, size), Aside: aside}) {
				return
			}
		}
	}
}

// Parts are limited in bytes, and a caller may stop in each of them.
func TestPartsAreSmall(t *testing.T) {
	c := &Conversation{}
	c.AddRest(20<<20, sized(20, 1<<20, ""))
	c.AddRest(3, sized(3, 1, ""))
	require.Greater(t, c.Size(), int64(20<<20))
	var lengths []int
	for some := range c.Parts() {
		require.LessOrEqual(t, NodesSize(some), int64(PartBytes+1<<20))
		lengths = append(lengths, len(some))
	}
	require.Equal(t, []int{0, 4, 4, 4, 4, 4, 3}, lengths)
	for stop := range lengths {
		parts := 0
		for range c.Parts() {
			if parts++; parts > stop {
				break
			}
		}
		require.Equal(t, stop+1, parts)
	}
}

// An input whose records are all in the rest of a conversation is not without records.
func TestRecordsInTheRest(t *testing.T) {
	for _, aside := range []string{"", lineage.AsideLog} {
		format := Format{Name: "made", Read: func(context.Context, *Input) iter.Seq2[*Conversation, error] {
			return func(yield func(*Conversation, error) bool) {
				c := &Conversation{SourceID: "c"}
				c.AddRest(3, sized(3, 1, aside))
				require.Equal(t, aside == "", c.Says())
				yield(c, nil)
			}
		}}
		for _, err := range Read(context.Background(), Stream("made", strings.NewReader("made")), ReadOptions{Format: "made", Formats: []Format{format}}) {
			require.NoError(t, err)
		}
	}
}
