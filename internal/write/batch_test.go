//test:race

package write

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Records keep what was put into them, however many follow, also in a batch that was used
// before.
func TestBatchKeepsRecords(t *testing.T) {
	var b Batch
	rapid.Check(t, func(t *rapid.T) {
		b.Durability = backend.Normal
		b.Reset(time.UnixMilli(7))
		require.Equal(t, backend.Normal, b.Durability)
		var want []structure.Record
		at := structure.SpanRef{Run: structure.NewID[structure.RunID]()}
		usages := func() []structure.Usage {
			return []structure.Usage{{Kind: structure.MessageUsage, Role: rapid.StringN(0, 5, 5).Draw(t, "role")}}
		}
		bytes := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				for range rapid.IntRange(1, 100).Draw(t, "spans") {
					at.Seq++
					u := usages()
					b.Span(at, structure.SpanSetID{}, u)
					want = append(want, &structure.Span{Ref: at, Usages: u})
				}
			case 1:
				var steps [][]structure.Usage
				for range rapid.IntRange(1, 100).Draw(t, "steps") {
					steps = append(steps, usages())
				}
				for i, ref := range b.Extend(InsertionPoint{After: at}, nil, steps) {
					want = append(want, &structure.Span{Ref: ref, Usages: steps[i]})
					require.Equal(t, at.Seq+1, ref.Seq)
					at = ref
				}
			case 2:
				home := structure.Home{Thread: structure.NewID[structure.ThreadID](), Incarnation: 3}
				after := at
				at = structure.SpanRef{Run: b.NewRun(structure.RunID{}, at, home)}
				want = append(want, &structure.Run{ID: at.Run, Parent: after, Home: home})
			case 3:
				c := Context{ID: structure.NewID[structure.ContextID](), At: at, Metadata: make([]byte, 10)}
				b.NewContext(c)
				bytes += 10
				want = append(want, &structure.Context{ID: c.ID, Base: at, Tip: at, Metadata: c.Metadata, CreatedAt: b.Time()})
			case 4:
				id := structure.NewID[structure.ContextID]()
				b.Point(id, at)
				want = append(want, &structure.Tip{Context: id, Span: at})
			}
		}
		require.Equal(t, want, b.Records())
		records, size := b.Size()
		require.Equal(t, len(want), records)
		require.Equal(t, bytes, size)
	})
}
