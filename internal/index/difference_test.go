package index

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Differences of two maps are the keys that they do not have alike.
func TestDifferences(t *testing.T) {
	sequence := func(entries map[string]string, failing error) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			for _, k := range slices.Sorted(maps.Keys(entries)) {
				if !yield(Entry{[]byte(k), []byte(entries[k])}, nil) {
					return
				}
			}
			if failing != nil {
				yield(Entry{}, failing)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.MapOf(rapid.StringMatching(`[a-c]{1,2}`), rapid.SampledFrom([]string{"", "1", "2"}))
		was, now := of.Draw(t, "was"), of.Draw(t, "is")
		want := maps.Clone(was)
		maps.Copy(want, now)
		var before []byte
		for d, err := range Differences(sequence(was, nil), sequence(now, nil)) {
			require.NoError(t, err)
			require.Negative(t, bytes.Compare(before, d.Key))
			before = d.Key
			a, inWas := was[string(d.Key)]
			b, inIs := now[string(d.Key)]
			require.Equal(t, d.Gone, !inIs)
			require.Equal(t, d.New, !inWas)
			require.Equal(t, a, string(d.Was))
			require.Equal(t, b, string(d.Is))
			require.True(t, a != b || inWas != inIs)
			delete(want, string(d.Key))
		}
		for k := range want {
			require.Equal(t, was[k], now[k])
		}
		broken := errors.New("broken")
		for _, sides := range [][2]error{{broken, nil}, {nil, broken}} {
			var failed error
			for _, err := range Differences(sequence(was, sides[0]), sequence(now, sides[1])) {
				failed = err
			}
			require.ErrorIs(t, failed, broken)
		}
	})
}
