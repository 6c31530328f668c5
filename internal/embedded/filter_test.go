package embedded

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/structure"
)

// A filter has every key that was added, and few false positives when it is full:
// for fingerprints, consecutive ids and random ids.
func TestFilter(t *testing.T) {
	const keys = minFilterKeys
	for name, make := range map[string]func(i int) [16]byte{
		"fingerprints": func(i int) [16]byte { return contentKey(uint32(i)) },
		"made":         func(int) [16]byte { return structure.NewID[structure.ContextID]() },
		"derived": func(i int) [16]byte {
			return structure.DeriveID[structure.ContextID]("test", string(binary.AppendUvarint(nil, uint64(i))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFilter(keys)
			given := [][16]byte{}
			for i := range keys {
				k := make(i)
				f.add(k[:])
				given = append(given, k)
			}
			for i := range given {
				require.True(t, f.has(given[i][:]))
			}
			wrong := 0
			for i := range keys {
				if k := make(keys + i); f.has(k[:]) {
					wrong++
				}
			}
			require.Less(t, wrong, keys/200)
			t.Logf("%d of %d others", wrong, keys)
			require.Zero(t, campaign.Allocs(10, func() { f.add(given[0][:]); f.has(given[1][:]) }))
		})
	}
}
