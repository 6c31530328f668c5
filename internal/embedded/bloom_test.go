package embedded

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/structure"
)

// idsOf returns ids as structure.NewID creates them, in moments that a seed chooses.
func idsOf(seed uint64) func(i int) [16]byte {
	r := rand.New(rand.NewPCG(seed, 0))
	number, millis := r.Uint64()>>3, uint64(1_795_000_000_000)+r.Uint64N(1<<30)
	each, pause := 1+r.IntN(30_000), 1+r.Uint64N(40)
	return func(i int) (id [16]byte) {
		if i%each == 0 {
			millis += 1 + r.Uint64N(pause)
		}
		binary.BigEndian.PutUint64(id[:], millis<<16|7<<12)
		binary.BigEndian.PutUint64(id[8:], 2<<62|number+uint64(i))
		return id
	}
}

// A filter has every key that was added, and few false positives when it is full:
// for fingerprints, consecutive ids and random ids.
//
//test:norace
func TestFilter(t *testing.T) {
	const keys = minFilterKeys
	kinds := map[string]func(i int) [16]byte{
		"fingerprints": func(i int) [16]byte { return contentKey(uint32(i)) },
		"derived": func(i int) [16]byte {
			return structure.DeriveID[structure.ContextID]("test", string(binary.AppendUvarint(nil, uint64(i))))
		},
	}
	for seed := range uint64(60) {
		kinds[fmt.Sprint("created ", seed)] = idsOf(seed)
	}
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			f := newBloomFilter(keys)
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
