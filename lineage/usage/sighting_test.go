package usage

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage/message"
)

// A row has what was written to it. One that is cut or continued is useless or has fewer sightings, and is never read beyond its end.
func TestRowsOfSightings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*sighting
		var seq int64
		for range rapid.IntRange(1, 5).Draw(t, "sightings") {
			seq += rapid.Int64Range(0, 1<<40).Draw(t, "steps")
			s := &sighting{run: 7, seq: seq, part: rapid.Int64Range(0, 1000).Draw(t, "part"), time: rapid.Int64Range(-1, 1<<62).Draw(t, "time"), keyed: rapid.Bool().Draw(t, "keyed")}
			if s.keyed {
				copy(s.key[:], rapid.SliceOfN(rapid.Byte(), len(s.key), len(s.key)).Draw(t, "key"))
			}
			s.figures = figures{model: 3, known: rapid.Uint8Range(0, 1<<message.TokenKinds-1).Draw(t, "known"), sums: sums{answers: 1, requests: 1, covers: 2, cost: rapid.Int64().Draw(t, "cost"), costs: 1}}
			for k := range s.tokens {
				if s.known&(1<<k) != 0 {
					s.tokens[k] = rapid.Int64Range(0, 1<<40).Draw(t, "tokens")
				}
			}
			all = append(all, s)
		}
		b := appendSightings(nil, all)
		read := func(b []byte) (got []*sighting, err error) {
			return got, decodeSightings(7, b, func(s *sighting) error {
				copied := *s
				got = append(got, &copied)
				return nil
			})
		}
		got, err := read(b)
		require.NoError(t, err)
		require.Equal(t, all, got)
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if got, err = read(b[:cut]); err != nil {
			require.ErrorIs(t, err, derivedfile.ErrUseless)
		}
		require.Less(t, len(got), len(all))
	})
}

// Counters and keys are read as they were written, and what is cut is useless.
func TestRowsOfCountersAndKeys(t *testing.T) {
	total := message.MakeTokens([message.TokenKinds]int64{300, 1 << 40}, 3)
	counters := []counter{{5, &total}, {5, &total}, {900, &total}}
	b := appendCounters(nil, counters)
	got, err := decodeCounters(5, b)
	require.NoError(t, err)
	require.Equal(t, counters, got)
	_, err = decodeCounters(5, b[:len(b)-1])
	require.ErrorIs(t, err, derivedfile.ErrUseless)
	require.Nil(t, lastBefore(got, 5))
	require.Equal(t, &total, lastBefore(got, 6))
	for _, b := range [][]byte{{1}, {0x80}, {1, 0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1}} {
		_, err := decodeKeys(0, b)
		require.ErrorIs(t, err, derivedfile.ErrUseless, b)
	}
}
