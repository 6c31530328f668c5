package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// feature: lineage/usages
func TestWhere(t *testing.T) {
	s := newStore(t)
	a := newContext(t, s, "shared", "only here")
	b := newContext(t, s)
	_, err := b.Extend(bg, lineage.Assistant("shared").From("large"))
	require.NoError(t, err)
	fork(t, a) // a fork is not a usage

	entries := gathered(t, s.Where(bg, content.Sum([]byte("shared"))))
	require.Len(t, entries, 2)
	require.Equal(t, "user", entries[0].Role)
	require.Equal(t, "assistant", entries[1].Role)
	require.Equal(t, content.OriginUser, entries[0].Origin.Kind)
	require.Equal(t, content.OriginAssistant, entries[1].Origin.Kind, "nobody's provenance is another's")
	require.Equal(t, "large", entries[1].Origin.ModelID)
	require.Len(t, gathered(t, s.Where(bg, content.Sum([]byte("only here")))), 1)
	require.Empty(t, gathered(t, s.Where(bg, content.Sum([]byte("never said")))))
}

func TestProvenanceEndsWithWhatIsKnown(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "first")
	second, err := c.Edit(bg, tip(t, c), lineage.User("second"), lineage.EditOptions{})
	require.NoError(t, err)
	third, err := second.Edit(bg, tip(t, second), lineage.User("third"), lineage.EditOptions{})
	require.NoError(t, err)
	id := lastEntry(t, third).Content
	chain := func() (ids []lineage.ContentID) {
		blocks, err := s.Provenance(bg, id)
		require.NoError(t, err)
		for _, b := range blocks {
			ids = append(ids, b.ID)
		}
		return ids
	}
	first := content.Sum([]byte("first"))
	require.Equal(t, []lineage.ContentID{id, content.Sum([]byte("second")), first}, chain())
	require.NoError(t, s.Erase(bg, first))
	require.Equal(t, []lineage.ContentID{id, content.Sum([]byte("second")), first}, chain())
}

func TestAuthor(t *testing.T) {
	s := newStore(t)
	a := newContext(t, s, "one")
	b := fork(t, a)
	_, err := b.Extend(bg, lineage.Assistant("two").From("large"), lineage.Assistant("three"))
	require.NoError(t, err)
	entries, err := b.All(bg)
	require.NoError(t, err)
	for i, want := range []lineage.ContextID{a.ID(), b.ID(), b.ID()} {
		_, through, err := s.Author(bg, entries[i])
		require.NoError(t, err)
		require.Equal(t, want, through)
	}

	_, _, err = addAndSend(s, a, b, lineage.User("hello"), lineage.User(""))
	require.NoError(t, err)
	for _, c := range []*lineage.Context{a, b} {
		_, through, err := s.Author(bg, lastEntry(t, c))
		require.NoError(t, err)
		require.Equal(t, c.ID(), through)
	}
}
