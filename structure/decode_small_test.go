package structure_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// A commit with fewer records and usages than the limit is decoded as without one, any other is malformed.
func TestDecodeSmallCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload, _, err := new(structure.Encoder).Encode(structuretest.Commits().Draw(t, "commit"))
		require.NoError(t, err)
		want, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		n := uint64(0)
		for _, r := range want.Records {
			n++
			if s, ok := r.(*structure.Span); ok {
				n += uint64(len(s.Usages))
			}
		}
		for _, most := range []uint64{n + 1, n + 2, math.MaxUint64} {
			got, err := structure.DecodeSmallCommit(payload, most)
			require.NoError(t, err, "%d of %d", n, most)
			require.Equal(t, want, got)
		}
		if n > 0 {
			_, err = structure.DecodeSmallCommit(payload, rapid.Uint64Range(0, n).Draw(t, "most"))
			require.ErrorIs(t, err, structure.ErrMalformed)
		}
	})
}
