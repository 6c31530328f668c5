package embedded

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// A long operation that waits for another one ends with its context.
func TestWaitingEndsWithContext(t *testing.T) {
	e := fill(t, t.TempDir(), Options{}, 3)
	defer e.Close()
	boom := errors.New("given up")
	for name, wait := range map[string]func(ctx context.Context) error{
		"collect": func(ctx context.Context) error {
			_, err := e.Collect(ctx, backend.CollectOptions{})
			return err
		},
		"pack": func(ctx context.Context) error {
			_, err := e.Pack(ctx, backend.PackOptions{})
			return err
		},
		"copy": func(ctx context.Context) error {
			for _, err := range e.Copy(ctx) {
				return err
			}
			return nil
		},
		"survey": func(ctx context.Context) error {
			_, err := e.Survey(ctx, backend.CollectOptions{})
			return err
		},
	} {
		for _, err := range e.Copy(background) { // a slow reader of a copy
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(background)
			ended := make(chan error)
			go func() { ended <- wait(ctx) }()
			cancel(boom)
			require.ErrorIs(t, <-ended, boom, name)
			break
		}
		require.NoError(t, wait(background), name)
	}
	require.NoError(t, e.collecting.One.Acquire(background))
	ctx, cancel := context.WithCancelCause(background)
	ended := make(chan error)
	go func() {
		_, err := e.Collect(ctx, backend.CollectOptions{})
		ended <- err
	}()
	cancel(boom)
	require.ErrorIs(t, <-ended, boom)
	e.collecting.One.Release()
}
