package embedded

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// The cost of finding and of missing content in packs, by their number.
func BenchmarkFindInPacks(b *testing.B) {
	const each = 400
	for _, packs := range []int{1, 10, 100} {
		e, err := Open(background, b.TempDir(), Options{Durability: backend.Normal, NoPacking: true})
		require.NoError(b, err)
		for i := range packs * each {
			_, err := e.Apply(background, message(uint64(i+1)), backend.Options{})
			require.NoError(b, err)
			if i%each == each-1 {
				require.NoError(b, e.journal.Seal())
				last := uint32(i/each + 1)
				_, err := e.journal.Rewrite(background, last, last, journal.RewriteOptions{})
				require.NoError(b, err)
			}
		}
		require.NoError(b, e.packing.Acquire(background))
		require.NoError(b, e.dropPacked(background))
		e.packing.Release()
		has := func(text func(i int) []byte) func(*testing.B) {
			return func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					_, err := e.Has(background, []content.ID{content.Sum(text(i))})
					require.NoError(b, err)
				}
			}
		}
		for _, filtered := range []bool{true, false} {
			name := fmt.Sprintf("packs=%d/", packs)
			if !filtered {
				e.absent.filter.ready.Store(nil) // as before the first write
				name += "without the filter/"
			}
			b.Run(name+"nothing", has(func(i int) []byte { return fmt.Appendf(nil, "never said %d", i) }))
			b.Run(name+"something", has(func(i int) []byte {
				return fmt.Appendf(nil, "message %d of a conversation that goes on and on", i*7919%(packs*each)+1)
			}))
		}
		require.NoError(b, e.Close())
	}
}
