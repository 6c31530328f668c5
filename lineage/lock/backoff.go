package lock

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	shortestPause = time.Millisecond
	longestPause  = 50 * time.Millisecond
)

// backoff spaces out attempts with growing, random pauses.
type backoff struct{ last time.Duration }

// pause waits. If ctx ends first, it returns the cause.
func (b *backoff) pause(ctx context.Context) error {
	b.last = min(max(2*b.last, shortestPause), longestPause)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(b.last/2 + rand.N(b.last)):
		return nil
	}
}
