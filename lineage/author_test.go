package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

func modeled(model string) lineage.Overrides { return lineage.Overrides{Model: &model} }

// by returns the user and model that Author returns for the last entry of a context.
func by(t *testing.T, s *lineage.Store, c *lineage.Context) [2]string {
	t.Helper()
	author, _, err := s.Author(bg, lastEntry(t, c))
	require.NoError(t, err)
	return [2]string{author.UserID, author.ModelID}
}

// TestImpliedOrigins derives the user from the thread and the model from the context, unless the
// message states them.
//
// feature: lineage/origin
func TestImpliedOrigins(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "ada", Overrides: modeled("large")})
	require.NoError(t, err)
	main := activeOf(t, thread)
	add := func(c *lineage.Context, i lineage.Item) [2]string {
		t.Helper()
		_, err := c.Extend(bg, i)
		require.NoError(t, err)
		return by(t, s, c)
	}
	require.Equal(t, [2]string{"ada", ""}, add(main, lineage.User("1")), "a person is no model")
	require.Equal(t, [2]string{"ada", "large"}, add(main, lineage.Assistant("22")))
	require.Equal(t, [2]string{"ada", "other"}, add(main, lineage.Assistant("333").From("other")))
	bob := lineage.Assistant("4444")
	bob.Origin.UserID = "bob"
	require.Equal(t, [2]string{"bob", "large"}, add(main, bob))

	small := modeled("small")
	side, err := main.Fork(bg, lineage.ForkOptions{Overrides: small})
	require.NoError(t, err)
	below, err := side.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	require.Equal(t, [2]string{"bob", "large"}, by(t, s, below), "who said it stays")
	require.Equal(t, [2]string{"ada", "small"}, add(below, lineage.Assistant("55555")))
	spans, err := thread.AddAfter(bg, lineage.SpanRef{}, lineage.Assistant("666666"))
	require.NoError(t, err)
	hung, err := s.Span(bg, spans[0])
	require.NoError(t, err)
	author, _, err := s.Author(bg, hung[0])
	require.NoError(t, err)
	require.Equal(t, "ada", author.UserID)
	require.Empty(t, author.ModelID, "the contexts of the thread do not agree")

	// Only stated fields are stored.
	entries, err := below.All(bg)
	require.NoError(t, err)
	for i, want := range [][2]string{{}, {}, {"", "other"}, {"bob", ""}, {}} {
		require.Equal(t, want, [2]string{entries[i].Origin.UserID, entries[i].Origin.ModelID})
	}

	// The model on which all contexts agree also applies to a deleted one.
	require.NoError(t, below.Delete(bg))
	require.NoError(t, side.Delete(bg))
	author, _, err = s.Author(bg, hung[0])
	require.NoError(t, err)
	require.Equal(t, "large", author.ModelID)
	require.NoError(t, thread.Delete(bg))
}

// TestImpliedUserOfSharedHistory keeps the user of a message when another user's thread forks it,
// until the thread is deleted.
func TestImpliedUserOfSharedHistory(t *testing.T) {
	s := newStore(t)
	ada, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	say(t, activeOf(t, ada), "hers")
	bob, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "bob"})
	require.NoError(t, err)
	forked, err := activeOf(t, ada).Fork(bg, lineage.ForkOptions{Thread: bob.ID()})
	require.NoError(t, err)
	require.Equal(t, [2]string{"ada", ""}, by(t, s, forked))
	first := lastEntry(t, forked)
	say(t, forked, "his")
	require.Equal(t, [2]string{"bob", ""}, by(t, s, forked))
	alone := newContext(t, s, "nobody's")
	require.Equal(t, [2]string{}, by(t, s, alone))
	require.NoError(t, ada.Delete(bg))
	author, _, err := s.Author(bg, first)
	require.NoError(t, err)
	require.Empty(t, author.UserID)
}
