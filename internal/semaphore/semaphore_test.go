//test:race

package semaphore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var errGivenUp = errors.New("given up")

func TestSlots(t *testing.T) {
	for _, slots := range []int{1, 3} {
		s, other := New(slots), New(slots)
		require.Equal(t, slots, s.Size())
		var inside, most atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 200 {
					if err := s.Acquire(context.Background()); err != nil {
						t.Error(err)
						return
					}
					n := inside.Add(1)
					for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
					}
					inside.Add(-1)
					s.Release()
				}
			})
		}
		all.Wait()
		require.LessOrEqual(t, most.Load(), int64(slots))
		for range slots {
			require.True(t, s.TryAcquire())
		}
		require.False(t, s.TryAcquire())
		require.True(t, other.TryAcquire(), "semaphores are independent")
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	s := New(1)
	ctx, cancel := context.WithCancelCause(context.Background())
	require.NoError(t, s.Acquire(ctx))
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() { ended <- s.Acquire(ctx) }()
	}
	cancel(errGivenUp)
	for range cap(ended) {
		require.ErrorIs(t, <-ended, errGivenUp)
	}
	s.Release()
	require.ErrorIs(t, s.Acquire(ctx), errGivenUp, "a free slot is not for a context that has ended")
	require.True(t, s.TryAcquire(), "the slot is free")
	s.Release()
	require.NoError(t, s.Acquire(context.Background()))
}
