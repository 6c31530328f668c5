package fit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/fit"
)

// history has the tokens of each position, and whether it belongs to the previous one.
type history struct {
	tokens   []int
	together []bool
}

func (h history) Tokens(_ context.Context, position uint64) (int, error) {
	return h.tokens[position-1], nil
}
func (h history) Together(_ context.Context, position uint64) (bool, error) {
	return h.together[position-1], nil
}

// TestChoose checks the invariants of every choice.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "length")
		h := history{
			tokens:   rapid.SliceOfN(rapid.IntRange(0, 30), n, n).Draw(t, "tokens"),
			together: rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "together"),
		}
		var summaries []fit.Summary
		if n > 0 {
			for first := 1; first <= n; first += rapid.IntRange(0, 4).Draw(t, "step") {
				if len(summaries) == 12 {
					break
				}
				last := rapid.IntRange(first, min(n, first+6)).Draw(t, "last")
				summaries = append(summaries, fit.Summary{
					First: uint64(first), Last: uint64(last), Level: rapid.Uint64Range(0, 2).Draw(t, "level"), Tokens: rapid.IntRange(1, 20).Draw(t, "summary"),
				})
			}
		}
		o := fit.Options{
			Length: uint64(n), From: rapid.Uint64Range(0, uint64(n)+1).Draw(t, "from"),
			Room:      rapid.SampledFrom([]int{0, 10, 50, 100, 400, fit.Unlimited}).Draw(t, "room"),
			Summaries: func(context.Context) ([]fit.Summary, error) { return summaries, nil },
		}
		c, err := fit.Choose(context.Background(), h, o)
		require.NoError(t, err)

		require.GreaterOrEqual(t, c.Start, max(o.From, 1))
		require.LessOrEqual(t, c.Start, uint64(n)+1)
		if c.Start > 1 && c.Start <= uint64(n) {
			require.False(t, h.together[c.Start-1], "positions that belong together are separated")
		}
		seen := make(map[uint64]bool)
		tokens, last := 0, uint64(0)
		for _, i := range c.Summaries {
			s := summaries[i]
			require.Greater(t, s.First, last, "overlapping or out of order")
			require.Less(t, s.First, c.Start, "all its messages are sent")
			last, tokens = s.Last, tokens+s.Tokens
			for at := s.First; at <= s.Last; at++ {
				seen[at] = true
			}
		}
		for at := c.Start; at <= uint64(n); at++ {
			seen[at] = true
			tokens += h.tokens[at-1]
		}
		require.EqualValues(t, n-len(seen), c.Omitted)
		require.LessOrEqual(t, tokens, o.Room)
		if o.Room == fit.Unlimited {
			want := max(o.From, 1)
			for want > 1 && want <= uint64(n) && h.together[want-1] {
				want++
			}
			require.Equal(t, want, c.Start)
		}
	})
}
