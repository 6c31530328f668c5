package fit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/fit"
)

// TestCalls checks that a cut is allowed exactly if it separates no result from its call.
func TestCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		use := rapid.Custom(func(t *rapid.T) fit.ToolPart {
			return fit.ToolPart{ID: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "id"), Result: rapid.Bool().Draw(t, "result")}
		})
		all := rapid.SliceOfN(rapid.SliceOfN(use, 0, 3), 1, 12).Draw(t, "history")
		parted := make([]bool, len(all)+1) // by the position that a cut is before
		for at := range all {
			for i, u := range all[at] {
				if !u.Result {
					continue
				}
				from, found := callOf(all, at, i)
				if !found && u.ID == "" {
					from = max(at-1, 0)
				}
				for p := from + 1; p <= at; p++ {
					parted[p] = true
				}
			}
		}
		c := fit.Calls{Length: uint64(len(all)), ToolParts: func(_ context.Context, position uint64) ([]fit.ToolPart, error) { return all[position-1], nil }}
		for range 2 * len(all) {
			p := rapid.IntRange(1, len(all)).Draw(t, "cut")
			got, err := c.Together(context.Background(), uint64(p))
			require.NoError(t, err)
			require.Equal(t, p > 1 && parted[p-1], got, "before position %d", p)
		}
	})
}

// callOf returns the position of the nearest call before a result, or the result's own if there
// is none.
func callOf(all [][]fit.ToolPart, at, index int) (from int, found bool) {
	got := all[at][index]
	for p := at; p >= 0; p-- {
		uses := all[p]
		if p == at {
			uses = uses[:index]
		}
		for _, u := range uses {
			if !u.Result && u.ID == got.ID {
				return p, true
			}
		}
	}
	return at, false
}

// A result without a call costs a bounded search.
func TestCallsBounded(t *testing.T) {
	asked := 0
	c := fit.Calls{Length: 100_000, ToolParts: func(_ context.Context, position uint64) ([]fit.ToolPart, error) {
		if asked++; position == 100_000 {
			return []fit.ToolPart{{ID: "nowhere", Result: true}}, nil
		}
		return nil, nil
	}}
	together, err := c.Together(context.Background(), 100_000)
	require.NoError(t, err)
	require.False(t, together)
	require.Less(t, asked, 1000)
}
