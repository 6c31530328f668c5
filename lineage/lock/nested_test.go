package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// nest calls With depth times, each inside the previous one.
func nest(ctx context.Context, path string, depth int, fn func(context.Context) error) error {
	if depth == 0 {
		return fn(ctx)
	}
	return With(ctx, path, Options{}, func(ctx context.Context) error { return nest(ctx, path, depth-1, fn) })
}

// A holder can lock the file again, under any name and in any order with other files, and keeps the
// lock until the outermost call ends.
//
// feature: lock/reenter
func TestNested(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(r, err)
		real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
		require.NoError(r, os.Mkdir(real, 0o700))
		if os.Symlink("real", link) != nil { // not every system allows it
			link = real
		}
		files := []string{filepath.Join(real, "a"), filepath.Join(link, "a"), filepath.Join(link, ".", "b"), filepath.Join(dir, "c")}
		calls := rapid.SliceOfN(rapid.IntRange(0, len(files)-1), 1, 8).Draw(r, "calls")
		detached := rapid.Bool().Draw(r, "detached")
		errInner := errors.New("from the innermost")
		var call func(ctx context.Context, n int) error
		call = func(ctx context.Context, n int) error {
			if n == len(calls) {
				return errInner
			}
			if detached {
				ctx = context.WithoutCancel(ctx)
			}
			err := With(ctx, files[calls[n]], Options{}, func(ctx context.Context) error {
				require.NoError(r, ctx.Err())
				return call(ctx, n+1)
			})
			for _, before := range calls[:n] {
				locked, lockErr := New(files[before], Options{}).IsLocked()
				require.NoError(r, lockErr)
				require.True(r, locked, "released by a nested call")
			}
			return err
		}
		require.ErrorIs(r, call(t.Context(), 0), errInner)
		for _, file := range files {
			require.NoFileExists(r, file+".lock")
		}
	})
}

func TestNestedEndsLikeTheOuter(t *testing.T) {
	path := target(t)
	require.PanicsWithValue(t, "inner", func() {
		_ = nest(t.Context(), path, 3, func(context.Context) error { panic("inner") })
	})
	require.NoFileExists(t, path+".lock")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = nest(context.Background(), path, 3, func(context.Context) error { runtime.Goexit(); return nil })
	}()
	<-done
	require.NoFileExists(t, path+".lock")
}

// Only the context carries the lock: a goroutine without it is refused or waits.
func TestOthersWaitForNested(t *testing.T) {
	path := target(t)
	var inside atomic.Bool
	other := make(chan error, 1)
	err := nest(t.Context(), path, 2, func(ctx context.Context) error {
		inside.Store(true)
		defer inside.Store(false)
		for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), carryKey{}, nil)} {
			require.ErrorIs(t, With(ctx, path, Options{}, func(context.Context) error { return nil }), ErrHeld)
		}
		elsewhere := target(t)
		require.NoError(t, With(t.Context(), elsewhere, Options{}, func(of context.Context) error {
			require.ErrorIs(t, With(of, path, Options{}, func(context.Context) error { return nil }), ErrHeld, "the context of another file")
			return nil
		}))
		go func() {
			other <- With(context.Background(), path, Options{Wait: -1}, func(context.Context) error {
				if inside.Load() {
					return errors.New("not alone")
				}
				return nil
			})
		}()
		return With(ctx, path, Options{}, func(context.Context) error { return nil })
	})
	require.NoError(t, err)
	require.NoError(t, <-other)
}

// Calls under one context run concurrently, and the lock ends with the last of them.
func TestNestedTogether(t *testing.T) {
	path := target(t)
	var met, left sync.WaitGroup
	const calls = 4
	met.Add(calls)
	var locked atomic.Int32
	outer := make(chan struct{})
	err := With(t.Context(), path, Options{}, func(ctx context.Context) error {
		for range calls {
			left.Add(1)
			go func() {
				defer left.Done()
				_ = With(ctx, path, Options{}, func(ctx context.Context) error {
					met.Done()
					met.Wait() // would hang if one waited for another
					<-outer
					<-ctx.Done() // the outer function has returned
					if err := With(context.WithoutCancel(ctx), path, Options{}, func(context.Context) error { return nil }); err != nil {
						t.Errorf("in a call that still runs: %v", err)
					}
					if got, err := New(path, Options{}).IsLocked(); got && err == nil {
						locked.Add(1)
					}
					return nil
				})
			}()
		}
		met.Wait()
		close(outer)
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, calls, locked.Load(), "the lock ended before the calls that it was lent to")
	require.NoFileExists(t, path+".lock")
	left.Wait()
}

// A context whose lock has ended does not carry it.
func TestContextThatOutlivesItsLock(t *testing.T) {
	path := target(t)
	var kept context.Context
	require.NoError(t, nest(t.Context(), path, 2, func(ctx context.Context) error {
		kept = ctx
		return nil
	}))
	fn := func(context.Context) error { return nil }
	require.ErrorIs(t, With(kept, path, Options{}, fn), context.Canceled)
	kept = context.WithoutCancel(kept)
	require.NoError(t, With(kept, path, Options{}, func(context.Context) error {
		locked, err := New(path, Options{}).IsLocked()
		require.True(t, locked, "it did not take the lock")
		return err
	}))
	require.NoFileExists(t, path+".lock")
	holder := New(path, Options{})
	require.NoError(t, holder.Acquire(t.Context()))
	defer holder.Release()
	require.ErrorIs(t, With(kept, path, Options{}, fn), ErrHeld)
}

// A nested call gets ErrLost when the lock is lost, like the outer one. A call that begins later
// does not use the lost lock.
func TestNestedLosesTheLock(t *testing.T) {
	path := target(t)
	opts := Options{Refresh: 5 * time.Millisecond}
	var inner, later error
	err := With(t.Context(), path, opts, func(ctx context.Context) error {
		inner = With(context.WithoutCancel(ctx), path, Options{}, func(ctx context.Context) error {
			require.NoError(t, os.Remove(path+".lock"))
			<-ctx.Done()
			return nil
		})
		<-ctx.Done()
		require.ErrorIs(t, With(ctx, path, Options{}, func(context.Context) error { return nil }), ErrLost)
		other := New(path, Options{})
		require.NoError(t, other.Acquire(t.Context()))
		defer other.Release()
		later = With(context.WithoutCancel(ctx), path, Options{}, func(context.Context) error { return nil })
		return nil
	})
	require.ErrorIs(t, inner, ErrLost)
	require.ErrorIs(t, later, ErrHeld)
	require.ErrorIs(t, err, ErrLost)
}

func TestNestedChecksItsArguments(t *testing.T) {
	path := target(t)
	require.NoError(t, With(t.Context(), path, Options{}, func(ctx context.Context) error {
		fn := func(context.Context) error { t.Error("ran"); return nil }
		require.Error(t, With(ctx, path, Options{Stale: time.Nanosecond}, fn))
		cause := errors.New("enough")
		cancelled, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		require.ErrorIs(t, With(cancelled, path, Options{}, fn), cause)
		require.Error(t, With(ctx, filepath.Join(path, "missing", "x"), Options{}, fn))
		return nil
	}))
}
