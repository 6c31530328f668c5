package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// reasons returns the reasons in a context's reflog.
func reasons(t testing.TB, c *lineage.Context) []string {
	t.Helper()
	var all []string
	for _, m := range gathered(t, c.Reflog(bg)) {
		all = append(all, m.Reason)
	}
	return all
}

// Undo reverts the last move and drops what was added after it; extending is not a move.
func TestUndoIgnoresExtending(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "question")
	offered, err := c.Alternatives(bg, lineage.Overrides{}, lineage.Overrides{})
	require.NoError(t, err)
	first, second := offered[0], offered[1]
	say(t, first, "answer 1")
	say(t, second, "answer 2")

	require.NoError(t, c.Choose(bg, first))
	require.ErrorIs(t, c.Undo(bg), lineage.ErrNotFound, "it went straight ahead")
	back(t, c, 1)
	require.NoError(t, c.Choose(bg, second))
	say(t, c, "thanks")
	require.Equal(t, []string{"rewind"}, reasons(t, c))

	require.NoError(t, c.Undo(bg))
	require.Equal(t, []string{"question", "answer 1"}, texts(t, c))
	require.NoError(t, c.Undo(bg))
	require.Equal(t, []string{"question", "answer 2", "thanks"}, texts(t, c))

	require.NoError(t, c.Choose(bg, first))
	require.Equal(t, []string{"rewind", "undo", "undo", "choose"}, reasons(t, c))
	merge(t, c, second)
	require.Equal(t, []string{"question", "answer 1", "answer 2"}, texts(t, c))
	require.NoError(t, c.Undo(bg))
	require.Equal(t, []string{"question", "answer 2", "thanks"}, texts(t, c))
}

// UndoFrom does nothing unless the context is at the tip that the caller has seen.
func TestUndoFrom(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "question", "answer")
	back(t, c, 1)
	seen, err := c.Tip(bg)
	require.NoError(t, err)
	say(t, c, "another answer")
	require.ErrorIs(t, c.UndoFrom(bg, seen), lineage.ErrTipMoved)
	require.Equal(t, []string{"question", "another answer"}, texts(t, c))
	require.Len(t, reasons(t, c), 1)
	seen, err = c.Tip(bg)
	require.NoError(t, err)
	require.NoError(t, c.UndoFrom(bg, seen))
	require.Equal(t, []string{"question", "answer"}, texts(t, c))
}
