package lineage_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func branchNames(t testing.TB, thread *lineage.Thread) []string {
	t.Helper()
	branches, err := thread.Branches(bg)
	require.NoError(t, err)
	var names []string
	for _, b := range branches {
		names = append(names, b.Name)
	}
	return names
}

func requireActive(t testing.TB, thread *lineage.Thread, name string) {
	t.Helper()
	b, err := thread.Branch(bg, "")
	require.NoError(t, err)
	require.Equal(t, name, b.Name)
	branches, err := thread.Branches(bg)
	require.NoError(t, err)
	for _, b := range branches {
		require.Equal(t, b.Name == name, b.Active, b.Name)
	}
}

// rewind creates and activates a branch at a span, with an automatic name.
func rewind(thread *lineage.Thread, to lineage.SpanRef) (lineage.BranchInfo, error) {
	return automatic(thread, lineage.BranchOptions{At: to, Empty: to.IsZero(), Switch: true})
}

// aside creates a branch with an automatic name at the tip of the active one.
func aside(thread *lineage.Thread) (lineage.BranchInfo, error) {
	return automatic(thread, lineage.BranchOptions{})
}

func automatic(thread *lineage.Thread, o lineage.BranchOptions) (lineage.BranchInfo, error) {
	made, err := thread.CreateBranch(bg, "", o)
	if err != nil {
		return lineage.BranchInfo{}, err
	}
	info, err := made.Info(bg)
	if err != nil {
		return lineage.BranchInfo{}, err
	}
	return thread.Branch(bg, info.Branch)
}

func renameBranch(thread *lineage.Thread, name, newName string) error {
	branch, err := thread.BranchContext(bg, name)
	if err != nil {
		return err
	}
	return thread.NameBranch(bg, newName, branch)
}

func TestBranchNames(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	thread, main := newThread(t, s)
	at := say(t, main, "one")
	aside, err := aside(thread)
	require.NoError(t, err)
	require.Equal(t, "main-v2", aside.Name)
	requireActive(t, thread, "main")
	rewound, err := rewind(thread, at)
	require.NoError(t, err)
	require.Equal(t, "main-v3", rewound.Name)
	requireActive(t, thread, "main-v3")

	// Names still follow the active branch after reopening.
	require.NoError(t, s.Close())
	s = open(t, dir)
	thread, err = s.Thread(bg, thread.ID())
	require.NoError(t, err)
	rewound, err = rewind(thread, at)
	require.NoError(t, err)
	require.Equal(t, "main-v3-v2", rewound.Name)

	// On main, versions of versions count too.
	require.NoError(t, thread.Switch(bg, "main"))
	rewound, err = rewind(thread, at)
	require.NoError(t, err)
	require.Equal(t, "main-v5", rewound.Name)
	require.Equal(t, []string{"main", "main-v2", "main-v3", "main-v3-v2", "main-v5"}, branchNames(t, thread))
}

func TestBranchNameTaken(t *testing.T) {
	thread, main := newThread(t, newStore(t))
	at := say(t, main, "one")
	for _, name := range []string{"main-v4", "main-v5"} {
		_, err := thread.CreateBranch(bg, name, lineage.BranchOptions{})
		require.NoError(t, err)
	}
	b, err := aside(thread) // three are counted
	require.NoError(t, err)
	require.Equal(t, "main-v6", b.Name)
	b, err = rewind(thread, at)
	require.NoError(t, err)
	require.Equal(t, "main-v7", b.Name)
}

func TestBranchNamesConcurrently(t *testing.T) {
	thread, main := newThread(t, newStore(t))
	say(t, main, "one")
	const n = 16
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { _, errs[i] = aside(thread) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, branchNames(t, thread), n+1)
	requireActive(t, thread, "main")
	_, err := thread.Branch(bg, "main-v17")
	require.NoError(t, err)
}

func TestRewindKeepsWhatCameAfter(t *testing.T) {
	thread, main := newThread(t, newStore(t))
	at := say(t, main, "one")
	say(t, main, "two")
	b, err := rewind(thread, at)
	require.NoError(t, err)
	require.Equal(t, uint64(1), b.Length)
	require.Equal(t, at, b.Head)
	active, err := thread.Active(bg)
	require.NoError(t, err)
	require.Equal(t, b.Context, active.ID())
	say(t, active, "another two")
	require.Equal(t, []string{"one", "two"}, texts(t, main))
	require.Equal(t, []string{"one", "another two"}, texts(t, active))

	b, err = rewind(thread, lineage.SpanRef{})
	require.NoError(t, err)
	require.Zero(t, b.Length, "rewound to the beginning")
}

func TestDeleteBranch(t *testing.T) {
	thread, main := newThread(t, newStore(t))
	say(t, main, "one")
	for _, name := range []string{"a", "b", "c"} {
		_, err := thread.CreateBranch(bg, name, lineage.BranchOptions{Switch: true})
		require.NoError(t, err)
	}
	b, err := thread.BranchContext(bg, "b")
	require.NoError(t, err)
	require.NoError(t, thread.DeleteBranch(bg, "b"))
	requireActive(t, thread, "c")
	_, err = b.Info(bg)
	require.ErrorIs(t, err, lineage.ErrNotFound)
	require.NoError(t, thread.DeleteBranch(bg, "c"))
	requireActive(t, thread, "main")
	require.NoError(t, renameBranch(thread, "main", "z"))
	require.NoError(t, thread.Switch(bg, "a"))
	require.NoError(t, thread.DeleteBranch(bg, "a"))
	requireActive(t, thread, "z")
	require.Equal(t, []string{"one"}, texts(t, main))
}

func TestRenameBranch(t *testing.T) {
	thread, main := newThread(t, newStore(t))
	at := say(t, main, "one")
	require.NoError(t, renameBranch(thread, "main", "trunk"))
	requireActive(t, thread, "trunk")
	require.NoError(t, renameBranch(thread, "trunk", "trunk"))
	on, err := thread.BranchContext(bg, "trunk")
	require.NoError(t, err)
	require.Equal(t, main.ID(), on.ID())
	b, err := rewind(thread, at)
	require.NoError(t, err)
	require.Equal(t, "trunk-v2", b.Name)
}

func TestNameBranch(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	thread, main := newThread(t, s)
	at := say(t, main, "one")
	say(t, main, "two")
	edited, err := main.Edit(bg, at, lineage.User("ONE"), lineage.EditOptions{})
	require.NoError(t, err)
	say(t, edited, "another")
	back(t, edited, 1)
	require.NoError(t, thread.NameBranch(bg, "edited", edited))
	requireActive(t, thread, "main")
	require.Equal(t, []string{"main", "edited"}, branchNames(t, thread))
	on, err := thread.BranchContext(bg, "edited")
	require.NoError(t, err)
	require.Equal(t, edited.ID(), on.ID(), "no other fork")
	require.NoError(t, thread.NameBranch(bg, "edited", edited))
	require.NoError(t, thread.NameBranch(bg, "edited too", edited))
	require.Equal(t, []string{"main", "edited too"}, branchNames(t, thread))
	require.NoError(t, thread.NameBranch(bg, "edited", edited))

	// It is a branch like any other.
	require.ErrorIs(t, edited.Delete(bg), lineage.ErrConflict)
	require.NoError(t, edited.Undo(bg))
	require.Equal(t, []string{"ONE", "another"}, texts(t, edited))
	require.NoError(t, thread.Switch(bg, "edited"))
	require.NoError(t, renameBranch(thread, "edited", "better"))
	require.NoError(t, s.Close())
	s = open(t, dir)
	thread, err = s.Thread(bg, thread.ID())
	require.NoError(t, err)
	requireActive(t, thread, "better")
	requireSound(t, s)
	require.NoError(t, thread.DeleteBranch(bg, "better"))
	_, err = s.Context(bg, edited.ID())
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

// A context that is concurrently given several names keeps only the last.
func TestNameBranchConcurrently(t *testing.T) {
	const names = 8
	thread, main := newThread(t, newStore(t))
	f := fork(t, main)
	var wg sync.WaitGroup
	errs := make([]error, names)
	for i := range names {
		wg.Go(func() { errs[i] = thread.NameBranch(bg, fmt.Sprint("name ", i), f) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, branchNames(t, thread), 2)
}

// A context is named or deleted, whichever comes first, but never both.
func TestNameBranchDuringDeletion(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	for i := range 50 {
		f := fork(t, main)
		name := fmt.Sprint("name ", i)
		var named, deleted error
		var wg sync.WaitGroup
		wg.Go(func() { named = thread.NameBranch(bg, name, f) })
		wg.Go(func() { deleted = f.Delete(bg) })
		wg.Wait()
		if named == nil {
			require.ErrorIs(t, deleted, lineage.ErrConflict)
			on, err := thread.BranchContext(bg, name)
			require.NoError(t, err)
			_, err = on.Info(bg)
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, named, lineage.ErrNotFound)
		require.NoError(t, deleted)
		_, err := thread.BranchContext(bg, name)
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
	requireSound(t, s)
}

func TestCheckpoints(t *testing.T) {
	thread, main := newThread(t, newClockedStore(t))
	first := say(t, main, "one")
	a, err := thread.SetCheckpoint(bg, "a", lineage.CheckpointOptions{})
	require.NoError(t, err)
	require.Equal(t, first, a.Span)
	second := say(t, main, "two")
	b, err := thread.SetCheckpoint(bg, "b", lineage.CheckpointOptions{})
	require.NoError(t, err)
	names := func() (names []string) {
		all, err := thread.Checkpoints(bg)
		require.NoError(t, err)
		for _, c := range all {
			names = append(names, c.Name)
		}
		return names
	}
	require.Equal(t, []string{"b", "a"}, names(), "newest first")

	moved, err := thread.SetCheckpoint(bg, "a", lineage.CheckpointOptions{})
	require.NoError(t, err)
	require.Equal(t, a.ID, moved.ID, "a checkpoint that is moved keeps its id")
	require.NotEqual(t, a.ID, b.ID)
	require.Equal(t, second, moved.Span)
	require.Equal(t, []string{"a", "b"}, names())
	found, err := thread.Checkpoint(bg, "a")
	require.NoError(t, err)
	require.Equal(t, moved, found)

	_, err = thread.SetCheckpoint(bg, "b", lineage.CheckpointOptions{At: first})
	require.NoError(t, err)
	restored, err := rewind(thread, checkpointAt(t, thread, "b"))
	require.NoError(t, err)
	require.Equal(t, "main-v2", restored.Name)
	require.Equal(t, first, restored.Head)
	requireActive(t, thread, "main-v2")

	require.NoError(t, thread.DeleteCheckpoint(bg, "a"))
	require.ErrorIs(t, thread.DeleteCheckpoint(bg, "a"), lineage.ErrNotFound)
	require.Equal(t, []string{"b"}, names())
}

func checkpointAt(t testing.TB, thread *lineage.Thread, name string) lineage.SpanRef {
	t.Helper()
	c, err := thread.Checkpoint(bg, name)
	require.NoError(t, err)
	return c.Span
}

// A thread without an active branch returns an error that says so.
func TestNoActiveBranch(t *testing.T) {
	s := newStore(t)
	id := structure.NewID[lineage.ThreadID]()
	_, err := write.Of(s).Engine().Apply(bg, &structure.Commit{Records: []structure.Record{&structure.Thread{ID: id}}}, backend.Options{})
	require.NoError(t, err)
	thread, err := s.Thread(bg, id)
	require.NoError(t, err)
	for name, do := range map[string]func() error{
		"active":     func() error { _, err := thread.Active(bg); return err },
		"branch":     func() error { _, err := thread.Branch(bg, ""); return err },
		"checkpoint": func() error { _, err := thread.SetCheckpoint(bg, "c", lineage.CheckpointOptions{}); return err },
	} {
		require.ErrorIs(t, do(), lineage.ErrNotFound, name)
		require.ErrorContains(t, do(), id.String(), name)
	}
}
