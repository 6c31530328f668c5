package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

func merge(t testing.TB, target, source *lineage.Context) []lineage.SpanRef {
	t.Helper()
	r, err := target.Merge(bg, source)
	require.NoError(t, err)
	return r
}

func TestMergeAppendIsIdempotent(t *testing.T) {
	s := newStore(t)
	a := newContext(t, s, "one", "two")
	b := fork(t, a)
	say(t, a, "a")
	say(t, b, "b1", "b2")
	r := merge(t, a, b)
	require.Len(t, r, 2)
	require.Equal(t, []string{"one", "two", "a", "b1", "b2"}, texts(t, a))
	require.Equal(t, []string{"one", "two", "b1", "b2"}, texts(t, b))

	for range 2 {
		require.Empty(t, merge(t, a, b))
	}
	say(t, b, "b3")
	require.Len(t, merge(t, a, b), 1)

	// In the other direction, only what b did not add itself is added, and nothing is added back.
	require.Len(t, merge(t, b, a), 1)
	require.Equal(t, []string{"one", "two", "b1", "b2", "b3", "a"}, texts(t, b))
	require.Empty(t, merge(t, a, b))

	// A fork of a merged context counts as merged too.
	c := fork(t, a)
	require.Empty(t, merge(t, c, b))

	// What was moved away from can be merged again.
	back(t, a, 1)
	require.Len(t, merge(t, a, b), 1)
	require.Equal(t, []string{"one", "two", "a", "b1", "b2", "b3"}, texts(t, a))
}

func TestMergeSaysEqualMessagesAgain(t *testing.T) {
	s := newStore(t)
	a := newContext(t, s, "same")
	b := newContext(t, s, "same")
	require.Len(t, merge(t, a, b), 1, "equal words said by another are another message")
	require.Empty(t, merge(t, a, b))
}

func TestMergeKeepsStepsTogether(t *testing.T) {
	s := newStore(t)
	a, b := newContext(t, s), newContext(t, s)
	_, err := b.Extend(bg, lineage.Together(lineage.User("look"), lineage.Item{Kind: lineage.Asset, Filename: "photo.png", Body: []byte("PNG")}))
	require.NoError(t, err)
	require.Len(t, merge(t, a, b), 1)
	entries, err := a.All(bg)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, 1, entries[1].Index)
	require.Equal(t, "photo.png", entries[1].Filename)
	dA, err := a.Digest(bg)
	require.NoError(t, err)
	dB, err := b.Digest(bg)
	require.NoError(t, err)
	require.Equal(t, dB, dA)
}

func TestMoveCanBeUndone(t *testing.T) {
	s := newStore(t)
	a, b := newContext(t, s, "a"), newContext(t, s, "b")
	was := tip(t, a)
	require.NoError(t, a.MoveTo(bg, tip(t, b), "replace"))
	require.Equal(t, []string{"b"}, texts(t, a))
	moves := gathered(t, a.Reflog(bg))
	require.Len(t, moves, 1)
	require.Equal(t, was, moves[0].From)
	require.Equal(t, "replace", moves[0].Reason)
	require.NoError(t, a.MoveTo(bg, tip(t, b), "replace"))
	require.Len(t, gathered(t, a.Reflog(bg)), 1, "moving to where it stands is no move")
	require.NoError(t, a.Undo(bg))
	require.Equal(t, []string{"a"}, texts(t, a))
	require.NoError(t, a.Undo(bg))
	require.Equal(t, []string{"b"}, texts(t, a), "undoing twice leads back")
}
