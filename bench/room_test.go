package bench

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFullDiskIsRefused(t *testing.T) {
	c := small(t)
	c.StoreMessages = math.MaxInt / 1_000_000
	_, err := Run(context.Background(), c)
	require.ErrorIs(t, err, ErrNoRoom)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)

	c.Workloads = []string{"length"} // creates no large store
	require.NoError(t, c.checkRoom())
}

func TestRoomNeeded(t *testing.T) {
	c := Config{StoreMessages: 10_000_000, MessageBytes: 500}
	require.InDelta(t, 7.6e9, float64(c.roomNeeded()), 0.1e9)
	free, err := freeBytes(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	_, err = freeBytes("/no/such/directory")
	require.Error(t, err)
}

// If a run is cancelled while it fills a store, nothing is left.
func TestCancelledFillCleansUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := small(t)
	c.StoreMessages, c.MessageBytes, c.Systems, c.Workloads = 10_000_000, 24, []string{nameLineage}, []string{"store"}
	c.Progress = func(what string) {
		if what != "" {
			cancel()
		}
	}
	_, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
