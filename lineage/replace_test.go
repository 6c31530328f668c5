package lineage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// replaceAfter replaces the history of a context after a span by items.
func replaceAfter(s *lineage.Store, c *lineage.Context, was, after lineage.SpanRef, items ...lineage.Item) (spans []lineage.SpanRef, err error) {
	err = s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		c, err := tx.Context(bg, c.ID())
		if err != nil {
			return err
		}
		tip, err := c.Tip(bg)
		if err != nil {
			return err
		}
		if tip != was {
			return &lineage.TipError{Context: c.ID(), Expected: was, Actual: tip}
		}
		if err := c.MoveTo(bg, after, "better"); err != nil {
			return err
		}
		spans, err = c.Extend(bg, items...)
		return err
	})
	return spans, err
}

func TestReplaceAfter(t *testing.T) {
	for name, row := range map[string]struct {
		keep uint64
		with []string
		want []string
	}{
		"nothing":      {3, nil, []string{"a", "b", "c"}},
		"the end":      {1, []string{"x", "y"}, []string{"a", "x", "y"}},
		"all":          {0, []string{"x"}, []string{"x"}},
		"by nothing":   {2, nil, []string{"a", "b"}},
		"all of it":    {0, nil, []string{}},
		"only to add":  {3, []string{"x"}, []string{"a", "b", "c", "x"}},
		"by the same":  {2, []string{"c"}, []string{"a", "b", "c"}},
		"by much more": {1, numbered("x", 50), append([]string{"a"}, numbered("x", 50)...)},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := newStore(t)
				c := newContext(t, s, "a", "b", "c")
				other := fork(t, c)
				if elsewhere { // another context continues the run
					say(t, other, "d")
				}
				was := tip(t, c)
				after, err := s.At(bg, was, row.keep)
				require.NoError(t, err)
				var items []lineage.Item
				for _, text := range row.with {
					items = append(items, lineage.User(text))
				}
				spans, err := replaceAfter(s, c, was, after, items...)
				require.NoError(t, err)
				require.Len(t, spans, len(items))
				require.Equal(t, row.want, texts(t, c))
				require.Equal(t, []string{"a", "b", "c"}, texts(t, other)[:3])
				if after == was {
					require.Empty(t, gathered(t, c.Reflog(bg)))
					return
				}
				moves := gathered(t, c.Reflog(bg))
				require.Len(t, moves, 1)
				require.Equal(t, "better", moves[0].Reason)
				require.Equal(t, [2]lineage.SpanRef{was, after}, [2]lineage.SpanRef{moves[0].From, moves[0].To})
				require.NoError(t, c.Undo(bg))
				require.Equal(t, was, tip(t, c))
				requireSound(t, s)
			})
		}
	}
}

func TestReplaceAfterRefuses(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "a", "b")
	was := tip(t, c)
	_, err := replaceAfter(s, c, was, lineage.SpanRef{}, lineage.Item{})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	say(t, c, "c")
	_, err = replaceAfter(s, c, was, lineage.SpanRef{}, lineage.User("x"))
	require.ErrorIs(t, err, lineage.ErrTipMoved)
	require.Equal(t, []string{"a", "b", "c"}, texts(t, c))
	require.Empty(t, gathered(t, c.Reflog(bg)))
}
