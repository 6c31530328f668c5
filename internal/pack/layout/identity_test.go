package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Ids of commits can be read back, and malformed ones are refused.
func TestIdentities(t *testing.T) {
	h := Header{FirstCommit: 1000, LastCommit: 5000}
	rapid.Check(t, func(t *rapid.T) {
		var all []Identity
		for commit := h.FirstCommit; rapid.IntRange(0, 5).Draw(t, "more") > 0; {
			if len(all) > 0 || rapid.Bool().Draw(t, "later") {
				commit += rapid.Uint64Range(1, 900).Draw(t, "step")
			}
			if commit > h.LastCommit {
				break
			}
			all = append(all, Identity{commit, rapid.Uint64Range(1, 1<<64-1).Draw(t, "id")})
		}
		b := AppendIdentities(nil, h.FirstCommit, all)
		got, rest, err := ReadIdentities(append(b, 7, 8), h)
		require.NoError(t, err)
		require.Equal(t, []byte{7, 8}, rest)
		require.Equal(t, all, got)
		for cut := range b {
			if _, _, err := ReadIdentities(b[:cut], h); err == nil {
				require.Fail(t, "read where it was cut", "%d of %d bytes", cut, len(b))
			}
		}
		for _, x := range all {
			require.Equal(t, x.ID, StatedBy(got, x.Commit))
		}
		require.Zero(t, StatedBy(got, h.LastCommit+1))
	})
	for name, all := range map[string][]Identity{
		"no id":           {{1000, 0}},
		"behind the last": {{5001, 1}},
		"the same commit": {{1000, 1}, {1000, 2}},
	} {
		_, _, err := ReadIdentities(AppendIdentities(nil, h.FirstCommit, all), h)
		require.ErrorIs(t, err, ErrTable, name)
	}
}
