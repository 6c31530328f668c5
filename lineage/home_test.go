package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// What a context adds belongs to its thread, even if its tip is in a run of another thread or of a
// deleted thread with the same id.
func TestMessagesBelongToTheirThread(t *testing.T) {
	s := newStore(t)
	thread := func(id string) (*lineage.Thread, *lineage.Context) {
		made, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: id})
		require.NoError(t, err)
		c, err := made.Active(bg)
		require.NoError(t, err)
		return made, c
	}
	say := func(c *lineage.Context, id string) lineage.SpanRef {
		spans, err := c.Extend(bg, lineage.User(id).WithID(id))
		require.NoError(t, err)
		return spans[0]
	}
	runs := func(of *lineage.Thread) (n int) {
		for _, err := range s.View().RunsOf(bg, of.ID(), structure.RunID{}) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	a, main := thread("a")
	b, _ := thread("b")
	first := say(main, "m1")
	fork, err := main.Fork(bg, lineage.ForkOptions{Thread: b.ID()})
	require.NoError(t, err)
	second := say(fork, "m1") // the same id in another thread
	require.NotEqual(t, first.Run, second.Run)
	require.Equal(t, second.Run, say(fork, "m2").Run, "it goes on in its own run")
	require.Equal(t, first.Run, say(main, "m2").Run, "nothing has followed in this one")
	for thread, at := range map[*lineage.Thread]lineage.SpanRef{a: first, b: second} {
		e, err := thread.Find(bg, "m1")
		require.NoError(t, err)
		require.Equal(t, at, e.Span)
		require.Equal(t, 1, runs(thread))
	}
	_, err = main.Extend(bg, lineage.User("again").WithID("m1"))
	require.ErrorIs(t, err, lineage.ErrExists)

	// The thread is created again, and one of its contexts points into a run of the deleted one.
	require.NoError(t, a.Delete(bg))
	a, _ = thread("a")
	require.Zero(t, runs(a))
	back, err := fork.Fork(bg, lineage.ForkOptions{Thread: a.ID(), At: first})
	require.NoError(t, err)
	third := say(back, "m1")
	require.NotEqual(t, first.Run, third.Run)
	e, err := a.Find(bg, "m1")
	require.NoError(t, err)
	require.Equal(t, third, e.Span)
	require.Equal(t, 1, runs(a))
}
