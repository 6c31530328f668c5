package lineage_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A thread, its messages, a branch and a checkpoint are one commit, and the transaction sees them.
func TestUpdateIsOneCommit(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	var thread *lineage.Thread
	var fork *lineage.Context
	before := head(t, s)
	require.NoError(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		_, err = tx.FindThread(ctx, "session")
		require.ErrorIs(t, err, lineage.ErrNotFound)
		thread, err = tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: "session", UserID: "ada"})
		require.NoError(t, err)
		_, err = tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: "session"})
		require.ErrorIs(t, err, lineage.ErrExists)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		spans, err := main.Extend(ctx, lineage.User("one").WithID("m1"), lineage.Assistant("two"))
		require.NoError(t, err)
		_, err = main.Extend(ctx, lineage.User("three"))
		require.NoError(t, err)
		entries, err := main.All(ctx)
		require.NoError(t, err)
		require.Len(t, entries, 3)
		require.Equal(t, "three", entries[2].Excerpt())
		found, err := thread.Find(ctx, "m1")
		require.NoError(t, err)
		require.Equal(t, spans[0], found.Span)
		fork, err = thread.CreateBranch(ctx, "aside", lineage.BranchOptions{At: spans[0], Switch: true})
		require.NoError(t, err)
		_, err = thread.SetCheckpoint(ctx, "here", lineage.CheckpointOptions{})
		require.NoError(t, err)
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		require.Len(t, branches, 2)
		require.NoError(t, thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = "title"; return nil }))
		return nil
	}))
	require.Equal(t, before+1, head(t, s))
	// Handles from the transaction remain usable.
	_, err := fork.Extend(ctx, lineage.Assistant("else"))
	require.NoError(t, err)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, "title", info.Title)
	entries, err := fork.All(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "else"}, []string{entries[0].Excerpt(), entries[1].Excerpt()})
}

// A transaction reads the spans it has added, and its handles become those of the store.
func TestTransactionIsTheStore(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	var inside *lineage.Store
	var spans []lineage.SpanRef
	require.NoError(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		inside = tx.Store
		require.Equal(t, s.ID(), tx.ID())
		c, err := tx.NewContext(ctx, lineage.ContextOptions{})
		require.NoError(t, err)
		spans, err = c.Extend(ctx, lineage.User("one"), lineage.User("two"))
		require.NoError(t, err)
		at, err := tx.At(ctx, spans[1], 1)
		require.NoError(t, err)
		require.Equal(t, spans[0], at)
		entries, err := tx.Span(ctx, spans[1])
		require.NoError(t, err)
		require.Equal(t, "two", entries[0].Excerpt())
		has, err := tx.View().Has(ctx, []content.ID{entries[0].Content})
		require.NoError(t, err)
		require.True(t, has[0])
		_, err = tx.Thread(ctx, lineage.ThreadID{1})
		require.ErrorIs(t, err, lineage.ErrNotFound)
		return nil
	}))
	for _, one := range []*lineage.Store{s, inside} {
		position, err := one.Position(ctx, spans[1])
		require.NoError(t, err)
		require.EqualValues(t, 2, position)
	}
	_, err := inside.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
}

// What a transaction creates has the time of its commit, however long it takes.
func TestUpdateHasOneTime(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	var thread *lineage.Thread
	require.NoError(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		if thread, err = tx.CreateThread(ctx, lineage.ThreadOptions{}); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
		_, err = thread.CreateBranch(ctx, "later", lineage.BranchOptions{})
		return err
	}))
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	later, err := thread.Branch(ctx, "later")
	require.NoError(t, err)
	require.Equal(t, info.CreatedAt, later.CreatedAt)
	require.Equal(t, later.UpdatedAt, later.CreatedAt)
}

// A transaction whose function fails leaves nothing, and its handles are closed.
func TestUpdateThatFails(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	before, mine := head(t, s), errors.New("mine")
	var thread *lineage.Thread
	require.ErrorIs(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		thread, err = tx.CreateThread(ctx, lineage.ThreadOptions{})
		require.NoError(t, err)
		return mine
	}), mine)
	require.Equal(t, before, head(t, s))
	_, err := thread.Info(ctx)
	require.ErrorIs(t, err, lineage.ErrClosed)
	require.ErrorIs(t, thread.Update(ctx, func(*lineage.ThreadInfo) error { return nil }), lineage.ErrClosed)
	_, err = s.Thread(ctx, thread.ID())
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

// Concurrent transactions update two threads, based on what they read in both.
func TestUpdatesAreSerialisable(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	for _, id := range []string{"a", "b"} {
		_, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: id, Title: "0"})
		require.NoError(t, err)
	}
	count := func(th *lineage.Thread) int {
		info, err := th.Info(ctx)
		require.NoError(t, err)
		n, err := strconv.Atoi(info.Title)
		require.NoError(t, err)
		return n
	}
	const writers, each, most = 8, 20, 100
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				err := s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
					a, err := tx.FindThread(ctx, "a")
					if err != nil {
						return err
					}
					b, err := tx.FindThread(ctx, "b")
					if err != nil {
						return err
					}
					one, sum := a, count(a)+count(b)
					if w%2 == 1 {
						one = b
					}
					if sum >= most {
						return nil // the sum of both must not exceed this
					}
					n := count(one)
					return one.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = strconv.Itoa(n + 1); return nil })
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	a, err := s.FindThread(ctx, "a")
	require.NoError(t, err)
	b, err := s.FindThread(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, min(most, writers*each), count(a)+count(b))
}

// losing loses the answers to some commits.
type losing struct {
	backend.Engine
	mu      sync.Mutex
	answers int
}

func (l *losing) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	receipt, err := l.Engine.Apply(ctx, c, o)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers++; err == nil && l.answers%3 != 0 {
		return backend.Receipt{}, backend.ErrUncertain
	}
	return receipt, err
}

func TestUpdateWhenAnswersAreLost(t *testing.T) {
	ctx, below := t.Context(), newStore(t)
	s := lineage.New(&losing{Engine: write.Of(below).Engine()})
	th, err := below.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
	for i := range 50 {
		require.NoError(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
			thread, err := tx.Thread(ctx, th.ID())
			if err != nil {
				return err
			}
			main, err := thread.Active(ctx)
			if err != nil {
				return err
			}
			_, err = main.Extend(ctx, lineage.User(fmt.Sprint(i)))
			return err
		}))
	}
	main, err := th.Active(ctx)
	require.NoError(t, err)
	entries, err := main.All(ctx)
	require.NoError(t, err)
	require.Len(t, entries, 50)
	for i, e := range entries {
		require.Equal(t, fmt.Sprint(i), e.Excerpt())
	}
}

func TestUpdateRefuses(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	outside, err := s.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
	active, err := outside.Active(ctx)
	require.NoError(t, err)
	tries := map[string]func(tx *lineage.Tx, th *lineage.Thread, main *lineage.Context) error{
		"reader": func(_ *lineage.Tx, _ *lineage.Thread, main *lineage.Context) error {
			_, err := main.Extend(ctx, lineage.Item{Role: "user", Reader: neverRead{}})
			return err
		},
		"list of contexts": func(_ *lineage.Tx, th *lineage.Thread, _ *lineage.Context) error {
			for _, err := range th.Contexts(ctx) {
				return err
			}
			return nil
		},
		"context of the store": func(_ *lineage.Tx, th *lineage.Thread, _ *lineage.Context) error {
			_, err := th.CreateBranch(ctx, "b", lineage.BranchOptions{From: active})
			return err
		},
		"summary": func(_ *lineage.Tx, _ *lineage.Thread, main *lineage.Context) error {
			_, err := main.EffectiveSummaries(ctx)
			return err
		},
		"list of threads": func(tx *lineage.Tx, _ *lineage.Thread, _ *lineage.Context) error {
			for _, err := range tx.Threads(ctx, lineage.ThreadQuery{}) {
				return err
			}
			return nil
		},
		"watching": func(tx *lineage.Tx, _ *lineage.Thread, _ *lineage.Context) error {
			for _, err := range tx.Watch(ctx, lineage.Cursor{}) {
				return err
			}
			return nil
		},
		"watching a context": func(_ *lineage.Tx, _ *lineage.Thread, main *lineage.Context) error {
			for _, err := range main.Watch(ctx, lineage.SpanRef{}) {
				return err
			}
			return nil
		},
		"stored reader": func(tx *lineage.Tx, _ *lineage.Thread, _ *lineage.Context) error {
			_, _, err := tx.Put(ctx, neverRead{}, lineage.BlockOptions{})
			return err
		},
		"erasing": func(tx *lineage.Tx, _ *lineage.Thread, main *lineage.Context) error {
			_, err := main.Extend(ctx, lineage.User("secret"))
			require.NoError(t, err)
			return tx.Erase(ctx, content.Sum([]byte("secret")))
		},
		"transaction": func(tx *lineage.Tx, _ *lineage.Thread, _ *lineage.Context) error {
			return tx.Update(ctx, func(context.Context, *lineage.Tx) error { return nil })
		},
		"syncing": func(tx *lineage.Tx, _ *lineage.Thread, _ *lineage.Context) error { return tx.Sync(ctx) },
		"closing": func(tx *lineage.Tx, _ *lineage.Thread, _ *lineage.Context) error { return tx.Close() },
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			before := head(t, s)
			require.ErrorIs(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
				th, err := tx.Thread(ctx, outside.ID())
				require.NoError(t, err)
				main, err := th.Active(ctx)
				require.NoError(t, err)
				return try(tx, th, main)
			}), lineage.ErrInvalid)
			require.Equal(t, before, head(t, s))
		})
	}
	require.ErrorIs(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		c, err := tx.NewContext(ctx, lineage.ContextOptions{})
		require.NoError(t, err)
		for i := range 11_000 {
			if _, err := c.Extend(ctx, lineage.User(fmt.Sprint(i))); err != nil {
				return err
			}
		}
		return nil
	}), lineage.ErrTooLarge)
}

type neverRead struct{}

func (neverRead) Read([]byte) (int, error) { panic("it is refused before it is read") }

// Equal content in two steps of a transaction keeps the type of each.
func TestUpdateKeepsTypes(t *testing.T) {
	ctx, s := t.Context(), newStore(t)
	var c *lineage.Context
	require.NoError(t, s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) (err error) {
		if c, err = tx.NewContext(ctx, lineage.ContextOptions{}); err != nil {
			return err
		}
		for _, kind := range []string{"text/plain", "application/json", "text/plain"} {
			if _, err := c.Extend(ctx, lineage.Item{Role: "user", Body: []byte("{}"), Type: kind}); err != nil {
				return err
			}
		}
		_, err = c.Extend(ctx, lineage.Assistant("{}"))
		return err
	}))
	entries, err := c.All(ctx)
	require.NoError(t, err)
	var types, origins []string
	for _, e := range entries {
		types, origins = append(types, e.Type), append(origins, fmt.Sprint(e.Origin.Kind))
	}
	require.Equal(t, []string{"text/plain", "application/json", "text/plain", "text/plain"}, types)
	require.Equal(t, []string{"user", "user", "user", "assistant"}, origins)
}

// A permanent refusal is not retried.
func TestRefusedOnce(t *testing.T) {
	ctx, below := t.Context(), newStore(t)
	counting := &applies{Engine: write.Of(below).Engine()}
	s := lineage.New(counting)
	thread, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: "t"})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("one").WithID("m"))
	require.NoError(t, err)
	for name, do := range map[string]func() error{
		"branch":  func() error { _, err := thread.CreateBranch(ctx, "main", lineage.BranchOptions{}); return err },
		"message": func() error { _, err := main.Extend(ctx, lineage.User("two").WithID("m")); return err },
		"thread":  func() error { _, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: "t"}); return err },
		"in update": func() error {
			return s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
				_, err := tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: "t"})
				return err
			})
		},
		"in update2": func() error {
			return s.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
				c, err := tx.Context(ctx, main.ID())
				if err != nil {
					return err
				}
				_, err = c.Extend(ctx, lineage.User("two").WithID("m"))
				return err
			})
		},
	} {
		counting.n = 0
		require.ErrorIs(t, do(), lineage.ErrExists, name)
		require.LessOrEqual(t, counting.n, 1, name)
	}
}

// applies counts attempted commits.
type applies struct {
	backend.Engine
	n int
}

func (a *applies) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	a.n++
	return a.Engine.Apply(ctx, c, o)
}
