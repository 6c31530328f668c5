package backendtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testNames replaces threads, contexts, branches and checkpoints: the last record wins.
func testNames(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(checkpoint("t", "here", at("r", 1)))
	renamed := thread("t")
	renamed.Title, renamed.Metadata, renamed.Active = "renamed", nil, id[structure.ContextID]("c")
	s.apply(renamed)
	prompt, empty := "be brief", ""
	v := view("c", "t", at("r", 3))
	v.Tip = at("r", 2)
	v.Overrides = structure.Overrides{SystemPrompt: &prompt, Model: &empty, JSON: []byte{}}
	s.apply(v)
	s.apply(v)
	main := branch("t", "main", "c")
	main.CreatedAt = moment(77)
	s.apply(main, checkpoint("t", "here", at("r", 1)))
	s.apply(branch("t", "other", "c"), checkpoint("t", "there", at("r", 1)))
}

func testDeletion(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(
		view("d", "t", at("r", 1)), branch("t", "side", "d"), checkpoint("t", "p", at("r", 1)), checkpoint("t", "q", at("r", 2)),
		summary("s1", "c", "one", at("r", 1)), summary("s2", "c", "two", at("r", 2)), summary("s2", "d", "two", at("r", 2)),
		reflog("d", at("r", 2), at("r", 1)),
	)
	s.apply(deleteSummary("c", "s2"))
	s.refuse(backend.ErrNotFound, deleteSummary("c", "s2"))
	s.apply(deleteName(structure.KindCheckpoint, "t", "p"))
	s.refuse(backend.ErrNotFound, deleteName(structure.KindCheckpoint, "t", "p"))
	s.refuse(backend.ErrConflict, deleteContext("d"))
	s.apply(deleteName(structure.KindBranch, "t", "side"))
	s.refuse(backend.ErrNotFound, deleteName(structure.KindBranch, "t", "side"))
	s.apply(deleteContext("d"))
	s.refuse(backend.ErrNotFound, deleteContext("d"))
	s.refuse(backend.ErrNotFound, move("d", at("r", 1)))
	// The same commit deletes the branch, so nothing names the context any more.
	s.refuse(backend.ErrConflict, deleteContext("c"), deleteName(structure.KindBranch, "t", "main"))
	s.apply(deleteName(structure.KindBranch, "t", "main"), deleteContext("c"))

	// A context with children can be deleted, and the children can still be replaced.
	parent, child := view("parent", "t", at("r", 1)), view("child", "t", at("r", 1))
	child.Parent = parent.ID
	s.apply(parent, child)
	s.apply(deleteContext("parent"))
	child.Metadata = []byte("{}")
	s.apply(child, move("child", at("r", 2)))
	s.restart()
	s.check()
}

// testRemnants deletes contexts from which others descend.
func testRemnants(t *testing.T, c Config) {
	s := newStore(t, c)
	forked := func(name, of, thread string) *structure.Context {
		v := view(name, thread, at("r", 1))
		v.Parent = id[structure.ContextID](of)
		return v
	}
	left := func(names ...string) {
		t.Helper()
		for _, name := range []string{"a", "b", "f", "d", "e"} {
			_, err := s.Remnant(background, id[structure.ContextID](name))
			if slices.Contains(names, name) {
				require.NoError(t, err, name)
				_, err = s.Context(background, id[structure.ContextID](name))
			}
			require.ErrorIs(t, err, backend.ErrNotFound, name)
		}
	}
	s.apply(talk()...)
	a := view("a", "t", at("r", 1))
	a.Overrides = structure.Overrides{SystemPrompt: new("You count birds."), JSON: []byte(`{"t": 1}`)}
	s.apply(a, forked("b", "a", "t"), thread("u"), forked("f", "b", "u"), summary("s", "b", "one", at("r", 1)), value(ofContext("b"), "k", "1"))
	s.apply(deleteContext("b"))
	left("b")
	s.refuse(backend.ErrNotFound, deleteContext("b"))
	s.refuse(backend.ErrNotFound, move("b", at("r", 2)))
	s.refuse(backend.ErrNotFound, forked("d", "b", "u"))
	s.refuse(backend.ErrNotFound, value(ofContext("b"), "k", "2"))
	s.refuse(backend.ErrNotFound, branch("t", "of b", "b"))
	s.apply(deleteThread("t"))
	left("a", "b")
	got, err := s.Remnant(background, a.ID)
	require.NoError(t, err)
	require.Equal(t, a.Remnant(), got)
	require.Empty(t, list(t, s.Children(background, a.ID, structure.ContextID{})), "b is no context")
	s.restart()
	s.check()

	// Only a commit that states a remnant forks it.
	b := forked("b", "a", "t").Remnant()
	s.refuse(backend.ErrNotFound, forked("d", "b", "u"), b)
	s.refuse(backend.ErrExists, forked("b", "f", "u").Remnant(), forked("d", "b", "u"))
	s.refuse(backend.ErrInvalid, view("e", "", structure.SpanRef{}).Remnant())
	s.refuse(backend.ErrExists, forked("f", "b", "u").Remnant())
	s.apply(b, forked("d", "b", "u"))
	s.apply(deleteContext("f"))
	left("a", "b")

	// A context takes the place of a remnant with the same parent.
	s.refuse(backend.ErrExists, forked("b", "d", "u"))
	s.apply(forked("b", "a", "u"))
	left("a")
	require.Len(t, list(t, s.Children(background, b.ID, structure.ContextID{})), 1)
	s.apply(deleteContext("d"))
	s.restart()
	s.apply(deleteContext("b"))
	left()
	s.check()
}

func testThreadDeletion(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(
		thread("other"), view("x", "other", at("r", 2)), branch("other", "main", "x"), checkpoint("other", "p", at("r", 3)),
		summary("s", "x", "one", at("r", 1)), reflog("x", at("r", 2), at("r", 1)),
	)
	s.apply(checkpoint("t", "p", at("r", 1)), summary("s", "c", "one", at("r", 1)), reflog("c", at("r", 2), at("r", 1)), view("d", "t", at("r", 1)))
	// This includes what the same commit adds to the thread.
	s.apply(
		view("e", "t", at("r", 1)), branch("t", "late", "e"), checkpoint("t", "late", at("r", 1)),
		summary("late", "e", "one", at("r", 1)), deleteThread("t"),
	)
	s.refuse(backend.ErrNotFound, deleteThread("t"))
	stats, err := s.Stats(background)
	require.NoError(t, err)
	require.Equal(t, uint64(1), stats.Threads)
	require.Equal(t, uint64(1), stats.Contexts)
	s.restart()
	s.check()
}

// testRecreation creates deleted things again, in later commits and in the same.
func testRecreation(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(summary("s", "c", "one", at("r", 1)), checkpoint("t", "p", at("r", 1)))
	s.apply(deleteThread("t"))
	s.apply(thread("t"), view("c", "t", at("r", 1)), branch("t", "main", "c"), checkpoint("t", "p", at("r", 2)))
	s.apply(deleteThread("t"), thread("t"), view("c", "t", structure.SpanRef{}), branch("t", "main", "c"))
	s.apply(view("d", "t", at("r", 1)), deleteName(structure.KindBranch, "t", "main"), branch("t", "main", "d"))
	s.apply(deleteContext("c"), thread("u"), view("c", "u", at("r", 3)), move("c", at("r", 2)), summary("s", "c", "two", at("r", 1)))
	other := checkpoint("u", "p", at("r", 3))
	other.ID = id[structure.CheckpointID]("another")
	s.apply(checkpoint("u", "p", at("r", 1)), deleteName(structure.KindCheckpoint, "u", "p"), other)
	s.restart()
	s.check()
}

func testErase(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(run("q", at("r", 1)), says(at("q", 1), "two", "one"), summary("s", "c", "two", at("r", 2)))
	two := content.Sum([]byte("two"))
	s.apply(erase("two"))
	s.apply(erase("two"))
	_, err := s.Blocks(background, []content.ID{two})
	require.ErrorIs(t, err, backend.ErrErased)
	for one, err := range s.Path(background, at("r", 2), structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		require.Nil(t, one.Blocks[0].Body)
		require.True(t, one.Blocks[0].Tree.IsZero())
		require.Equal(t, two, one.Blocks[0].ID)
	}
	// A history with erased content can still be extended, and its content used.
	s.apply(run("p", at("r", 2)), says(at("p", 1), "two"))

	// Another writer may restore it, in another form.
	again := text("two")
	again.Type, again.Origin = content.TypeMarkdown, content.BlockOrigin{Kind: content.OriginImport}
	require.Empty(t, s.apply(again, says(at("r", 4), "two")).Known)
	s.apply(says(at("q", 2), "two"))
	s.apply(erase("two"))
	s.apply(text("two"))
	require.Len(t, list(t, s.Where(background, two)), 5)
	require.Equal(t, []content.ID{two}, s.apply(text("two"), thread("u")).Known)
	s.restart()
	s.check()
}

// testEraseWithin erases content in the commit that adds it.
func testEraseWithin(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(talk()...)
	s.apply(text("brief"), says(at("r", 4), "brief"), erase("brief"))
	s.apply(text("brief"), says(at("r", 5), "brief"))
	s.apply(erase("brief"), text("brief"))
	s.apply(erase("brief"), text("brief"), erase("brief"), says(at("r", 6), "brief"))
	s.apply(text("new"), erase("new"), text("new"), says(at("r", 7), "new"))
	// A span takes no metadata from blocks after it, even if another block of the commit is known.
	s.apply(erase("new"), says(at("r", 8), "new"), text("one"), text("new"))
	s.restart()
	s.check()
}

// testErasedElsewhere adds the marker of content that was erased in another store: a block without
// its bytes in a commit that erases it. The model does not support these.
func testErasedElsewhere(t *testing.T, c Config) {
	s := newStore(t, c)
	apply := func(records ...structure.Record) (backend.Receipt, error) {
		return s.Apply(background, s.commit(records...), backend.Options{})
	}
	gone := &structure.Block{Block: text("gone").Block}
	require.True(t, gone.Gone())
	_, err := apply(gone)
	require.ErrorIs(t, err, backend.ErrInvalid)
	_, err = apply(erase("gone"), gone)
	require.ErrorIs(t, err, backend.ErrInvalid)

	_, err = apply(gone, erase("gone"))
	require.NoError(t, err)
	_, err = apply(run("r", structure.SpanRef{}), says(at("r", 1), "gone"))
	require.NoError(t, err)
	_, err = s.Blocks(background, []content.ID{gone.ID})
	require.ErrorIs(t, err, backend.ErrErased)
	described := func() {
		t.Helper()
		for step, err := range s.Path(background, at("r", 1), structure.Window{}, backend.PathOptions{Bodies: true}) {
			require.NoError(t, err)
			require.True(t, step.Blocks[0].Gone())
			require.Equal(t, gone.Block, step.Blocks[0].Block)
		}
	}
	described()
	s.restart()
	described()
	require.Empty(t, verify(t, s.Engine, true))

	// Adding the bytes restores the content; then the marker is refused.
	_, err = apply(text("gone"))
	require.NoError(t, err)
	_, err = apply(gone, erase("gone"))
	require.ErrorIs(t, err, backend.ErrExists)
	has, err := s.Has(background, []content.ID{gone.ID})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, has)
	require.Empty(t, verify(t, s.Engine, true))
}
