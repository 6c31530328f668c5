package pack

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Ids of commits can be read back, and malformed ones are refused.
func TestIdentities(t *testing.T) {
	h := Header{FirstCommit: 1000, LastCommit: 5000}
	rapid.Check(t, func(t *rapid.T) {
		var all []identity
		for commit := h.FirstCommit; rapid.IntRange(0, 5).Draw(t, "more") > 0; {
			if len(all) > 0 || rapid.Bool().Draw(t, "later") {
				commit += rapid.Uint64Range(1, 900).Draw(t, "step")
			}
			if commit > h.LastCommit {
				break
			}
			all = append(all, identity{commit, rapid.Uint64Range(1, 1<<64-1).Draw(t, "id")})
		}
		b := appendIdentities(nil, h.FirstCommit, all)
		got, rest, err := readIdentities(append(b, 7, 8), h)
		require.NoError(t, err)
		require.Equal(t, []byte{7, 8}, rest)
		require.Equal(t, all, got)
		for cut := range b {
			if _, _, err := readIdentities(b[:cut], h); err == nil {
				require.Fail(t, "read where it was cut", "%d of %d bytes", cut, len(b))
			}
		}
		for _, x := range all {
			require.Equal(t, x.id, statedBy(got, x.commit))
		}
		require.Zero(t, statedBy(got, h.LastCommit+1))
	})
	for name, all := range map[string][]identity{
		"no id":           {{1000, 0}},
		"behind the last": {{5001, 1}},
		"the same commit": {{1000, 1}, {1000, 2}},
	} {
		_, _, err := readIdentities(appendIdentities(nil, h.FirstCommit, all), h)
		require.ErrorIs(t, err, errTable, name)
	}
}
