package lock

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// feature: lock/with
func TestWithReleases(t *testing.T) {
	errFn := errors.New("from fn")
	for name, run := range map[string]func(path string, fn func(context.Context) error){
		"returns": func(path string, fn func(context.Context) error) {
			require.NoError(t, With(t.Context(), path, Options{}, fn))
		},
		"fails": func(path string, fn func(context.Context) error) {
			err := With(t.Context(), path, Options{}, func(ctx context.Context) error {
				return errors.Join(fn(ctx), errFn)
			})
			require.ErrorIs(t, err, errFn)
		},
		"panics": func(path string, fn func(context.Context) error) {
			require.PanicsWithValue(t, "from fn", func() {
				_ = With(t.Context(), path, Options{}, func(ctx context.Context) error {
					require.NoError(t, fn(ctx))
					panic("from fn")
				})
			})
		},
		"exits its goroutine": func(path string, fn func(context.Context) error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = With(context.Background(), path, Options{}, func(ctx context.Context) error {
					_ = fn(ctx)
					runtime.Goexit()
					return nil
				})
			}()
			<-done
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			var during bool
			var inner context.Context
			run(path, func(ctx context.Context) (err error) {
				inner = ctx
				during, err = New(path, Options{}).IsLocked()
				return errors.Join(err, ctx.Err())
			})
			require.True(t, during)
			require.Error(t, inner.Err(), "ends with the lock")
			require.NoFileExists(t, path+".lock")
		})
	}
}

// feature: lock/with
func TestWithNamesTheHolder(t *testing.T) {
	path := target(t)
	l := New(path, Options{})
	require.NoError(t, l.Acquire(t.Context()))
	defer l.Release()
	for name, opts := range map[string]Options{"at once": {}, "after a wait": {Wait: 20 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			err := With(t.Context(), path, opts, func(context.Context) error {
				t.Error("not alone")
				return nil
			})
			var held *HeldError
			require.ErrorAs(t, err, &held)
			require.ErrorIs(t, err, ErrHeld)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, path, held.Path)
			require.Equal(t, os.Getpid(), held.Holder.PID)
		})
	}
}

func TestWithWaits(t *testing.T) {
	for name, wait := range map[string]time.Duration{"a minute": time.Minute, "for ever": -1} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			inside, leave := make(chan struct{}), make(chan struct{})
			first := make(chan error, 1)
			go func() {
				first <- With(context.Background(), path, Options{}, func(context.Context) error {
					close(inside)
					<-leave
					return nil
				})
			}()
			<-inside
			time.AfterFunc(20*time.Millisecond, func() { close(leave) })
			var ran bool
			require.NoError(t, With(t.Context(), path, Options{Wait: wait}, func(context.Context) error {
				ran = true
				return nil
			}))
			require.True(t, ran)
			require.NoError(t, <-first)
		})
	}
}

func TestWithCancelled(t *testing.T) {
	for name, wait := range map[string]time.Duration{"no wait": 0, "a wait": time.Minute, "for ever": -1} {
		t.Run(name, func(t *testing.T) {
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			err := With(ctx, target(t), Options{Wait: wait}, func(context.Context) error {
				t.Error("cancelled before")
				return nil
			})
			require.ErrorIs(t, err, cause)
		})
	}
}

func TestWithLosesTheLock(t *testing.T) {
	for name, result := range map[string]func(context.Context) error{
		"and says so":      func(ctx context.Context) error { return context.Cause(ctx) },
		"without noticing": func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := target(t)
			opts := Options{Refresh: 5 * time.Millisecond}
			err := With(t.Context(), path, opts, func(ctx context.Context) error {
				if err := os.Remove(path + ".lock"); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return result(ctx)
				case <-time.After(hangs):
					return errors.New("the context goes on")
				}
			})
			require.ErrorIs(t, err, ErrLost)
		})
	}
}

func TestHeldErrorText(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	known := &HeldError{Path: "a.json", Holder: &Info{PID: 7, Hostname: "h", Since: since}}
	require.EqualError(t, known, "a.json: lock is held by process 7 on h since 2026-01-02T03:04:05Z")
	unknown := &HeldError{Path: "a.json", Holder: &Info{}}
	require.EqualError(t, unknown, "a.json: lock is held by an unknown process")
}
