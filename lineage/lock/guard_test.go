package lock

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
)

func TestGuardExcludes(t *testing.T) {
	const goroutines, rounds = 8, 100
	path := target(t) + ".lock"
	var inside, collisions atomic.Int32
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range rounds {
				g, err := enterGuard(context.Background(), path)
				if err != nil {
					errs[i] = err
					return
				}
				if inside.Add(1) > 1 {
					collisions.Add(1)
				}
				_, _ = os.Lstat(path) // some time
				inside.Add(-1)
				leaveGuard(g)
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Zero(t, collisions.Load())
}

// A process that opened the guard before its owner removed it has locked a file that is no longer
// at the path.
func TestRemovedGuardIsNotCurrent(t *testing.T) {
	if !guardIsRemovable {
		t.Skip("the guard stays here")
	}
	path := target(t) + ".lock.guard"
	owner, err := tryGuard(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	require.ErrorIs(t, vfs.TryLock(f, vfs.Exclusive), vfs.ErrBusy)
	leaveGuard(owner)

	require.NoError(t, vfs.TryLock(f, vfs.Exclusive))
	require.False(t, isCurrent(f), "removed")
	next, err := tryGuard(path)
	require.NoError(t, err)
	defer leaveGuard(next)
	require.False(t, isCurrent(f), "another's")
	require.True(t, isCurrent(next))
}

func TestGuardWaitIsCancelled(t *testing.T) {
	path := target(t) + ".lock"
	g, err := enterGuard(t.Context(), path)
	require.NoError(t, err)
	defer leaveGuard(g)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = enterGuard(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
}
