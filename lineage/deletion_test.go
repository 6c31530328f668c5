package lineage_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// deletions are the ways to delete a context with forks: side, or all of its thread.
var deletions = map[string]func(*lineage.Thread, *lineage.Context) error{
	"context": func(_ *lineage.Thread, side *lineage.Context) error { return side.Delete(bg) },
	"branch":  func(thread *lineage.Thread, _ *lineage.Context) error { return thread.DeleteBranch(bg, "side") },
	"thread":  func(thread *lineage.Thread, _ *lineage.Context) error { return thread.Delete(bg) },
}

// sideOf creates a thread with a context side, which is a branch for deletions of a branch. A prompt is
// set in main and a model in side.
func sideOf(t testing.TB, s *lineage.Store, how string) (*lineage.Thread, *lineage.Context) {
	t.Helper()
	thread, main := newThread(t, s)
	require.NoError(t, setOverrides(main, lineage.Overrides{SystemPrompt: pointer("You count birds.")}))
	model := lineage.Overrides{Model: pointer("large")}
	if how == "branch" {
		side, err := thread.CreateBranch(bg, "side", lineage.BranchOptions{From: main, Overrides: model})
		require.NoError(t, err)
		return thread, side
	}
	side, err := main.Fork(bg, lineage.ForkOptions{Overrides: model})
	require.NoError(t, err)
	return thread, side
}

func requireBoth(t testing.TB, c *lineage.Context) {
	t.Helper()
	o, err := c.Effective(bg)
	require.NoError(t, err)
	require.Equal(t, lineage.Overrides{SystemPrompt: pointer("You count birds."), Model: pointer("large")}, o)
}

// A deletion is one commit, whatever the number of forks, and they keep the overrides in force.
func TestDeletionIsOneCommit(t *testing.T) {
	for how, remove := range deletions {
		t.Run(how, func(t *testing.T) {
			s := newStore(t)
			elsewhere, _ := newThread(t, s)
			thread, side := sideOf(t, s, how)
			var forks []*lineage.Context
			for range 3 {
				f, err := side.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
				require.NoError(t, err)
				forks = append(forks, f)
			}
			before, err := write.Of(s).Engine().Head(bg)
			require.NoError(t, err)
			require.NoError(t, remove(thread, side))
			after, err := write.Of(s).Engine().Head(bg)
			require.NoError(t, err)
			require.Equal(t, before.Number+1, after.Number)
			for _, f := range forks {
				requireBoth(t, f)
			}
			_, err = side.Info(bg)
			require.ErrorIs(t, err, lineage.ErrNotFound)
			_, err = side.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
			require.ErrorIs(t, err, lineage.ErrNotFound, "a fork made after the deletion")
			requireSound(t, s)
		})
	}
}

// dying is an engine whose process dies after a number of commits.
type dying struct {
	backend.Engine
	commits int
}

var errDead = errors.New("dead")

func (d *dying) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if d.commits == 0 {
		return backend.Receipt{}, errDead
	}
	d.commits--
	return d.Engine.Apply(ctx, c, o)
}

func (d *dying) Recent() backend.Reader { return d }

// leaving is an engine whose owner goes away with the commit of a deletion.
type leaving struct {
	backend.Engine
	gone bool
}

func (l *leaving) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	receipt, err := l.Engine.Apply(ctx, c, o)
	for _, r := range c.Records {
		l.gone = l.gone || err == nil && r.Kind() == structure.KindDeletion
	}
	return receipt, err
}

func (l *leaving) Head(ctx context.Context) (backend.Cursor, error) {
	if l.gone {
		return backend.Cursor{}, backend.ErrExpired
	}
	return l.Engine.Head(ctx)
}

func (l *leaving) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	if l.gone {
		return nil, backend.ErrExpired
	}
	return l.Engine.Snapshot(ctx)
}

func (l *leaving) Recent() backend.Reader { return l }

// A deletion that was applied succeeds, whatever happens to the owner of the store after it.
func TestOwnerLeavesAfterDeletion(t *testing.T) {
	for how, remove := range deletions {
		t.Run(how, func(t *testing.T) {
			below := newStore(t)
			elsewhere, _ := newThread(t, below)
			thread, side := sideOf(t, below, how)
			f, err := side.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
			require.NoError(t, err)
			s := lineage.New(&leaving{Engine: write.Of(below).Engine()})
			there, err := s.Thread(bg, thread.ID())
			require.NoError(t, err)
			branch, err := s.Context(bg, side.ID())
			require.NoError(t, err)
			require.NoError(t, remove(there, branch))
			requireBoth(t, f)
		})
	}
}

// A fork made just before its parent is deleted keeps the overrides in force, whatever commit of the
// deletion is the last one.
func TestDeathDuringDeletion(t *testing.T) {
	for how, remove := range deletions {
		t.Run(how, func(t *testing.T) {
			for commits := range 4 {
				below := newStore(t)
				elsewhere, _ := newThread(t, below)
				thread, side := sideOf(t, below, how)
				forked := &interrupted{Engine: write.Of(below).Engine(), at: []structure.Kind{structure.KindDeletion}}
				engine := &dying{Engine: forked, commits: commits}
				s := lineage.New(engine)
				var f *lineage.Context
				forked.do = func() {
					var err error
					f, err = side.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
					require.NoError(t, err)
				}
				there, err := s.Thread(bg, thread.ID())
				require.NoError(t, err)
				branch, err := s.Context(bg, side.ID())
				require.NoError(t, err)
				err = remove(there, branch)
				require.True(t, err == nil || errors.Is(err, errDead), "%v", err)
				if f != nil {
					requireBoth(t, f)
				}
			}
		})
	}
}

// Readers never see a fork without the overrides that it inherits while its parent is deleted.
func TestReadersDuringDeletion(t *testing.T) {
	for how, remove := range deletions {
		t.Run(how, func(t *testing.T) {
			s := newStore(t)
			elsewhere, _ := newThread(t, s)
			for i := range 20 {
				thread, side := sideOf(t, s, how)
				f, err := side.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
				require.NoError(t, err)
				deleted := make(chan struct{})
				var readers sync.WaitGroup
				failures := make(chan string, 2)
				for range 2 {
					readers.Go(func() {
						for {
							o, err := f.Effective(bg)
							if err != nil || o.SystemPrompt == nil || o.Model == nil {
								failures <- fmt.Sprintf("round %d: %+v, %v", i, o, err)
								return
							}
							select {
							case <-deleted:
								return
							default:
							}
						}
					})
				}
				require.NoError(t, remove(thread, side))
				close(deleted)
				readers.Wait()
				select {
				case failure := <-failures:
					t.Fatal(failure)
				default:
				}
			}
		})
	}
}

// A transaction deletes what it has read, and sees that. Forks keep the overrides in force.
func TestDeletionInATransaction(t *testing.T) {
	for how, remove := range deletions {
		t.Run(how, func(t *testing.T) {
			s := newStore(t)
			elsewhere, _ := newThread(t, s)
			thread, side := sideOf(t, s, how)
			before, err := side.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
			require.NoError(t, err)
			var inside *lineage.Context
			require.NoError(t, s.Update(bg, func(_ context.Context, tx *lineage.Tx) error {
				there, err := tx.Thread(bg, thread.ID())
				require.NoError(t, err)
				branch, err := tx.Context(bg, side.ID())
				require.NoError(t, err)
				inside, err = branch.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
				require.NoError(t, err)
				require.NoError(t, remove(there, branch))
				_, err = branch.Info(bg)
				require.ErrorIs(t, err, lineage.ErrNotFound)
				_, err = branch.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
				require.ErrorIs(t, err, lineage.ErrNotFound)
				require.ErrorIs(t, branch.Delete(bg), lineage.ErrNotFound)
				for _, id := range []lineage.ContextID{inside.ID(), before.ID()} {
					c, err := tx.Context(bg, id)
					require.NoError(t, err)
					requireBoth(t, c)
				}
				return nil
			}))
			for _, c := range []*lineage.Context{inside, before} {
				requireBoth(t, c)
			}
			_, err = side.Info(bg)
			require.ErrorIs(t, err, lineage.ErrNotFound)
			requireSound(t, s)
		})
	}
}

// A branch can be created again with the source id of a deleted one. Forks of the deleted one keep
// what they inherit, and those of the new one inherit from it.
func TestBranchAgain(t *testing.T) {
	for name, inside := range map[string]bool{"apart": false, "in a transaction": true} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			thread, main := newThread(t, s)
			other, _ := newThread(t, s)
			create := func(in *lineage.Thread, model string) (*lineage.Context, error) {
				return in.CreateBranch(bg, "b", lineage.BranchOptions{SourceID: "b-1", Overrides: lineage.Overrides{Model: &model}})
			}
			var forks []*lineage.Context
			again := func(in *lineage.Thread, model string) error {
				if len(forks) > 0 {
					if err := in.DeleteBranch(bg, "b"); err != nil {
						return err
					}
				}
				b, err := create(in, model)
				if err != nil {
					return err
				}
				f, err := b.Fork(bg, lineage.ForkOptions{})
				forks = append(forks, f)
				return err
			}
			for i := range 4 {
				if !inside {
					require.NoError(t, again(thread, fmt.Sprint("model ", i)))
				} else {
					require.NoError(t, s.Update(bg, func(_ context.Context, tx *lineage.Tx) error {
						in, err := tx.Thread(bg, thread.ID())
						require.NoError(t, err)
						return again(in, fmt.Sprint("model ", i))
					}))
				}
				for k, f := range forks {
					o, err := f.Effective(bg)
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint("model ", k), *o.Model)
				}
				_, err := create(thread, "x")
				require.ErrorIs(t, err, lineage.ErrExists)
				_, err = create(other, "x")
				require.ErrorIs(t, err, lineage.ErrExists, "in another thread")
			}
			for _, f := range forks[:3] {
				require.NoError(t, f.Delete(bg))
			}
			_, err := create(other, "x")
			require.ErrorIs(t, err, lineage.ErrExists, "its usual id is free")
			require.NoError(t, forks[3].Delete(bg))
			require.NoError(t, thread.DeleteBranch(bg, "b"))
			b, err := create(other, "x")
			require.NoError(t, err)
			require.Equal(t, lineage.SourceBranch("b-1"), b.ID())
			_, err = main.Info(bg)
			require.NoError(t, err)
			requireSound(t, s)
		})
	}
}
