package judge_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func forkOf(name, parent string) *structure.Context {
	c := &structure.Context{ID: id[structure.ContextID](name)}
	if parent != "" {
		c.Parent = id[structure.ContextID](parent)
	}
	return c
}

func deletionOf(name string) *structure.Deletion {
	return &structure.Deletion{Subject: structure.KindContext, Context: id[structure.ContextID](name)}
}

// A deleted context is a remnant as long as anything descends from it.
func TestRemnants(t *testing.T) {
	c := newCourt(t)
	must := func(records ...structure.Record) {
		t.Helper()
		require.NoError(t, c.decide(backend.Options{}, records...))
	}
	left := func(names ...string) {
		t.Helper()
		require.Len(t, c.rows.remnants, len(names))
		for _, name := range names {
			require.Contains(t, c.rows.remnants, id[structure.ContextID](name))
		}
	}
	prompt := "You count birds."
	root := forkOf("a", "")
	root.Overrides.SystemPrompt = &prompt
	must(root, forkOf("b", "a"), forkOf("c", "b"), forkOf("d", "b"))
	must(deletionOf("b"))
	left("b")
	must(deletionOf("a"))
	left("a", "b")
	require.Equal(t, &prompt, c.rows.remnants[root.ID].Overrides.SystemPrompt)
	require.ErrorIs(t, c.decide(backend.Options{}, forkOf("e", "b")), backend.ErrNotFound, "a fork made after the deletion")
	require.ErrorIs(t, c.decide(backend.Options{}, deletionOf("b")), backend.ErrNotFound)
	must(deletionOf("c"))
	left("a", "b")
	must(deletionOf("d"))
	left()

	// In one commit, in any order.
	must(root, forkOf("b", "a"), forkOf("c", "b"), deletionOf("a"), deletionOf("b"), deletionOf("c"))
	left()
	must(root, forkOf("b", "a"), forkOf("c", "b"), deletionOf("b"), deletionOf("a"), forkOf("e", "c"), deletionOf("c"))
	left("a", "b", "c")

	// With the same parent a context takes the place of its remnant, with another it does not.
	require.ErrorIs(t, c.decide(backend.Options{}, forkOf("x", ""), forkOf("c", "x")), backend.ErrExists)
	must(forkOf("c", "b"))
	left("a", "b")
	must(deletionOf("e"), deletionOf("c"))
	left()
}

// Only a commit that states a remnant can add contexts below it.
func TestStatedRemnants(t *testing.T) {
	c := newCourt(t)
	refused := func(why error, records ...structure.Record) {
		t.Helper()
		require.ErrorIs(t, c.decide(backend.Options{}, records...), why)
	}
	a, b := forkOf("a", "").Remnant(), forkOf("b", "a").Remnant()
	refused(backend.ErrInvalid, &structure.Remnant{})
	refused(backend.ErrInvalid, a)
	refused(backend.ErrNotFound, b, forkOf("c", "b"))
	refused(backend.ErrNotFound, forkOf("c", "a"), a)
	require.NoError(t, c.decide(backend.Options{}, a, b, forkOf("c", "b")))
	refused(backend.ErrNotFound, forkOf("d", "b"))
	refused(backend.ErrExists, forkOf("b", "").Remnant(), forkOf("d", "b"))
	refused(backend.ErrExists, forkOf("c", "b").Remnant())
	require.NoError(t, c.decide(backend.Options{}, b, forkOf("d", "b")))
	require.NoError(t, c.decide(backend.Options{}, forkOf("b", "a"), deletionOf("c"), deletionOf("d")))
	require.NoError(t, c.decide(backend.Options{}, deletionOf("b")))
	require.Empty(t, c.rows.remnants)
}

// counted counts the lookups of children and remnants.
type counted struct {
	judge.View
	lookups int
}

func (v *counted) NextChild(parent, after structure.ContextID) (structure.ContextID, bool, error) {
	v.lookups++
	return v.View.NextChild(parent, after)
}

func (v *counted) Remnant(id structure.ContextID) (*structure.Remnant, error) {
	v.lookups++
	return v.View.Remnant(id)
}

// A deletion does not look at all forks, and deleting all of them looks at each only some times.
func TestDeletionsDoNotCountForks(t *testing.T) {
	const forks = 500
	c := newCourt(t)
	records := []structure.Record{forkOf("a", "")}
	var gone []structure.Record
	for i := range forks {
		name := fmt.Sprint("fork ", i)
		records, gone = append(records, forkOf(name, "a")), append(gone, deletionOf(name))
	}
	require.NoError(t, c.decide(backend.Options{}, records...))
	cost := func(records ...structure.Record) int {
		view := &counted{View: c.rows}
		var j judge.Judge
		_, err := j.Judge(t.Context(), judge.Case{Commit: &structure.Commit{Number: 2, Records: records}, View: view})
		require.NoError(t, err)
		return view.lookups
	}
	require.Less(t, cost(deletionOf("a")), 10)
	require.Less(t, cost(append([]structure.Record{deletionOf("a")}, gone...)...), 10*forks)
	require.Less(t, cost(append(gone, deletionOf("a"))...), 10*forks)
}
