package judge

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A table behaves like a map with few or many entries, and groups return every added
// entry.
func TestTable(t *testing.T) {
	var table OrderedMap[int, int]
	var grouped groups[int, int]
	rapid.Check(t, func(t *rapid.T) {
		table.reset()
		grouped.reset()
		want, lists := map[int]int{}, map[int][]int{}
		for i := range rapid.IntRange(0, 120).Draw(t, "steps") {
			k := rapid.IntRange(0, 40).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				table.drop(k)
				delete(want, k)
			case 1:
				require.Equal(t, lists[k], grouped.get(k))
			default:
				table.set(k, i)
				want[k] = i
				grouped.add(k, i)
				lists[k] = append(lists[k], i)
			}
		}
		require.Equal(t, len(want), table.Len())
		got := map[int]int{}
		for k, v := range table.All() {
			got[k] = v
		}
		require.Equal(t, want, got)
		for k := range 41 {
			v, ok := table.Get(k)
			found, there := want[k]
			require.Equal(t, there, ok)
			require.Equal(t, found, v)
		}
	})
}
