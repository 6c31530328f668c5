//test:race

package lock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// feature: lock/acquire
func TestAcquireIsIdempotent(t *testing.T) {
	path := target(t)
	l := New(path, Options{})
	for range 3 {
		won, err := l.TryAcquire()
		require.NoError(t, err)
		require.True(t, won)
		require.NoError(t, l.Acquire(t.Context()))
	}
	for range 3 {
		require.NoError(t, l.Release())
		requireFiles(t, filepath.Dir(path))
	}
}

// feature: lock/acquire
// feature: lock/release
// feature: lock/is-locked
func TestLocksOfOneProcessExcludeEachOther(t *testing.T) {
	path := target(t)
	first, second := New(path, Options{}), New(path, Options{})
	require.NoError(t, first.Acquire(t.Context()))
	won, err := second.TryAcquire()
	require.NoError(t, err)
	require.False(t, won)

	require.NoError(t, second.Release(), "never acquired")
	for _, l := range []*Lock{first, second} {
		holder, err := l.Holder()
		require.NoError(t, err)
		require.Equal(t, os.Getpid(), holder.PID)
		locked, err := l.IsLocked()
		require.NoError(t, err)
		require.True(t, locked)
	}
	require.NoError(t, first.Release())
	locked, err := second.IsLocked()
	require.NoError(t, err)
	require.False(t, locked)
	requireAcquires(t, second)
}

func TestGoroutinesExcludeEachOther(t *testing.T) {
	const goroutines, rounds = 8, 20
	path := target(t)
	require.NoError(t, os.WriteFile(path, []byte("0"), 0o600))
	var all sync.WaitGroup
	errs := make([]error, goroutines)
	for i := range goroutines {
		all.Go(func() { errs[i] = repeat(rounds, path, increment) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(goroutines*rounds), string(data))
}

func TestOneLockManyGoroutines(t *testing.T) {
	l := New(target(t), Options{Stale: time.Second, Refresh: time.Millisecond})
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			for range 20 {
				_, acquired := l.TryAcquire()
				_, looked := l.IsLocked()
				errs[i] = errors.Join(errs[i], acquired, looked, l.Release())
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	locked, err := l.IsLocked()
	require.NoError(t, err)
	require.False(t, locked)
}

// The time is not that of the machine, which may be too busy to refresh in time.
//
// feature: lock/old
func TestLiveHolderIsNotRobbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := Options{Stale: 3 * time.Second, Refresh: 20 * time.Millisecond}
		path := target(t)
		holder, contender := New(path, opts), New(path, opts)
		require.NoError(t, holder.Acquire(t.Context()))
		held, done := holder.Context(t.Context())
		defer done()

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := contender.Acquire(ctx)
		require.ErrorIs(t, err, ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, held.Err())
		require.NoError(t, holder.Release())
	})
}

func TestRefreshRenewsTheStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := target(t)
		l := New(path, Options{Refresh: 5 * time.Millisecond})
		require.NoError(t, l.Acquire(t.Context()))
		first, err := l.Holder()
		require.NoError(t, err)
		require.Equal(t, first.Since, first.Refreshed)
		require.Eventually(t, func() bool {
			now, err := l.Holder()
			return err == nil && now.Since.Equal(first.Since) && now.Refreshed.After(first.Refreshed)
		}, time.Minute, time.Millisecond)
		require.NoError(t, l.Release())
	})
}

func TestUnresponsiveHolderGivesWayToAWaiter(t *testing.T) {
	at, err := here()
	require.NoError(t, err)
	for name, stamp := range map[string]time.Time{
		"stopped":         time.Now(),
		"ahead of time":   time.Now().Add(24 * time.Hour),
		"behind the time": time.Now().Add(-24 * time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			writeLock(t, path, newRecord(at, 50*time.Millisecond, stamp))
			l := New(path, Options{Stale: 50 * time.Millisecond})
			won, err := l.TryAcquire()
			require.NoError(t, err)
			require.False(t, won, "its process runs")
			require.NoError(t, l.Acquire(t.Context()))
			require.NoError(t, l.Release())
		})
	}
}

// feature: lock/file
func TestLockFile(t *testing.T) {
	path := target(t)
	l := New(path, Options{})
	require.NoError(t, l.Acquire(t.Context()))
	defer l.Release()
	stat, err := os.Stat(path + ".lock")
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), stat.Mode())
	}
	s, err := readLockFile(path + ".lock")
	require.NoError(t, err)
	require.NotNil(t, s.record)
	require.Equal(t, os.Getpid(), s.record.PID)
	require.Equal(t, hostname(t), s.record.Hostname)
	require.NoFileExists(t, path)
}

func TestDirectoryByAnotherName(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	require.NoError(t, os.Mkdir(real, 0o700))
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	l := New(filepath.Join(link, "..", "link", "a"), Options{})
	require.NoError(t, l.Acquire(t.Context()))
	locked, err := New(filepath.Join(real, "a"), Options{}).IsLocked()
	require.NoError(t, err)
	require.True(t, locked)
	// The target of the link is irrelevant for the holder.
	require.NoError(t, os.Remove(link))
	require.NoError(t, l.Release())
	requireFiles(t, real)
}

func TestMissingDirectory(t *testing.T) {
	l := New(filepath.Join(t.TempDir(), "missing", "a"), Options{})
	_, err := l.TryAcquire()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, l.Acquire(t.Context()), fs.ErrNotExist)
	locked, err := l.IsLocked()
	require.NoError(t, err)
	require.False(t, locked)
	require.NoError(t, l.Release())
}

func TestInvalidOptions(t *testing.T) {
	for name, opts := range map[string]Options{
		"negative stale":     {Stale: -1},
		"tiny stale":         {Stale: time.Microsecond},
		"refresh too seldom": {Stale: time.Second, Refresh: time.Second},
		"negative refresh":   {Refresh: -1},
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			_, err := New(path, opts).TryAcquire()
			require.ErrorContains(t, err, "lock options")
			_, err = New(path, opts).Holder()
			require.ErrorContains(t, err, "lock options")
			requireFiles(t, filepath.Dir(path))
		})
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	path := target(t)
	holder, waiter := New(path, Options{}), New(path, Options{})
	require.NoError(t, holder.Acquire(t.Context()))

	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- waiter.Acquire(ctx) }()
	time.Sleep(10 * time.Millisecond)
	cancel()
	err := <-result
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, waiter.Release())

	locked, err := waiter.IsLocked()
	require.NoError(t, err)
	require.True(t, locked)
	require.NoError(t, holder.Release())
	require.ErrorIs(t, waiter.Acquire(ctx), context.Canceled, "although it is free")
	requireFiles(t, filepath.Dir(path))
}

func TestLostLock(t *testing.T) {
	at, err := here()
	require.NoError(t, err)
	successor := newRecord(at, time.Minute, time.Now())
	for name, disturb := range map[string]func(path string) error{
		"removed": func(path string) error { return os.Remove(path + ".lock") },
		"directory gone": func(path string) error {
			dir := filepath.Dir(path)
			return retryTransient(func() error { return os.Rename(dir, dir+".gone") })
		},
		"garbage": func(path string) error { return os.WriteFile(path+".lock", []byte("{"), 0o600) },
		"replaced": func(path string) error {
			return os.WriteFile(path+".lock", successor.encode(), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			l := New(path, Options{Refresh: 5 * time.Millisecond})
			require.NoError(t, l.Acquire(t.Context()))
			ctx, done := l.Context(t.Context())
			defer done()
			require.NoError(t, disturb(path))
			requireEnds(t, ctx, ErrLost)

			before, readErr := os.ReadFile(path + ".lock")
			require.ErrorIs(t, l.Release(), ErrLost)
			require.NoError(t, l.Release())
			after, err := os.ReadFile(path + ".lock")
			require.Equal(t, readErr == nil, err == nil)
			require.Equal(t, before, after, "it is another's")
		})
	}
}

func TestLossFoundByAcquiringAgain(t *testing.T) {
	path := target(t)
	l := New(path, Options{})
	require.NoError(t, l.Acquire(t.Context()))
	ctx, done := l.Context(t.Context())
	defer done()
	require.NoError(t, os.Remove(path+".lock"))

	require.NoError(t, l.Acquire(t.Context()))
	requireEnds(t, ctx, ErrLost)
	require.FileExists(t, path+".lock")
	require.NoError(t, l.Release())
}

func TestContext(t *testing.T) {
	l := New(target(t), Options{})
	ctx, done := l.Context(t.Context())
	defer done()
	require.ErrorIs(t, context.Cause(ctx), ErrNotHeld)

	require.NoError(t, l.Acquire(t.Context()))
	ctx, done = l.Context(t.Context())
	defer done()
	other, doneOther := l.Context(t.Context())
	doneOther()
	require.ErrorIs(t, context.Cause(other), context.Canceled)
	require.NoError(t, ctx.Err())
	require.NoError(t, l.Release())
	requireEnds(t, ctx, ErrNotHeld)
}

// requireEnds waits for the end of a lock's context.
func requireEnds(t *testing.T, ctx context.Context, cause error) {
	t.Helper()
	select {
	case <-ctx.Done():
		require.ErrorIs(t, context.Cause(ctx), cause)
	case <-time.After(hangs):
		require.Fail(t, "the context goes on")
	}
}

// Several locks on a file, acquired, released and disturbed in any order, behave like a variable
// with the holder.
//
// feature: lock/holder
func TestLocksAgreeOnTheHolder(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "file")
		locks := []*Lock{New(path, Options{}), New(path, Options{}), New(path, Options{})}
		const nobody = -1
		holder := nobody
		lost := map[int]bool{}
		some := rapid.IntRange(0, len(locks)-1)
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				i := some.Draw(t, "lock")
				won, err := locks[i].TryAcquire()
				require.NoError(t, err)
				require.Equal(t, holder == nobody || holder == i, won)
				delete(lost, i) // it has noticed that its lock was lost
				if won {
					holder = i
				}
			},
			"release": func(t *rapid.T) {
				i := some.Draw(t, "lock")
				err := locks[i].Release()
				if lost[i] {
					require.ErrorIs(t, err, ErrLost)
				} else {
					require.NoError(t, err)
				}
				delete(lost, i)
				if holder == i {
					holder = nobody
				}
			},
			"remove the file": func(t *rapid.T) {
				require.NoError(t, remove(path+".lock"))
				if holder != nobody {
					lost[holder] = true
				}
				holder = nobody
			},
			"": func(t *rapid.T) {
				locked, err := locks[0].IsLocked()
				require.NoError(t, err)
				require.Equal(t, holder != nobody, locked)
			},
		})
		for _, l := range locks {
			_ = l.Release()
		}
		require.NoFileExists(t, path+".lock")
	})
}
