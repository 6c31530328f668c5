package yielding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
)

// work simulates a second of work that yields after each step of ten microseconds, and
// returns the number of yields and their total duration.
func work(away func(n int) time.Duration) (yields int, lost time.Duration) {
	const step = 10 * time.Microsecond
	now := time.Now()
	var y Yielder
	for done := time.Duration(0); done < time.Second; done += step {
		now = now.Add(step)
		if y.owed(now) {
			continue
		}
		left := now
		now = now.Add(away(yields))
		y.returned(left, now)
		yields++
		lost += now.Sub(left)
	}
	return yields, lost
}

// Goroutines that block soon run after each step.
func TestYieldsOftenToTheQuick(t *testing.T) {
	yields, lost := work(func(int) time.Duration { return 5 * time.Microsecond })
	require.Equal(t, 100_000, yields)
	require.Equal(t, time.Second/2, lost)
}

// Goroutines that never block delay the work to at most eight times its own time,
// except for the last yield.
func TestIsNotStarved(t *testing.T) {
	for _, slice := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond} {
		_, lost := work(func(int) time.Duration { return slice })
		require.LessOrEqual(t, lost, patience*time.Second+slice, "%v", slice)
		require.GreaterOrEqual(t, lost, patience*time.Second/2, "%v", slice)
	}
	_, lost := work(func(n int) time.Duration {
		if n%2 == 0 {
			return 20 * time.Millisecond
		}
		return time.Microsecond
	})
	require.LessOrEqual(t, lost, patience*time.Second+20*time.Millisecond)
}

func TestYield(t *testing.T) {
	var y Yielder
	require.Zero(t, campaign.Allocs(100, y.Yield))
	require.False(t, y.back.IsZero())
}
