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
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{next: shortestPause} }

// pause waits. If ctx ends first, it returns the cause.
func (b *backoff) pause(ctx context.Context) error {
	timer := time.NewTimer(b.next/2 + rand.N(b.next))
	defer timer.Stop()
	b.next = min(2*b.next, longestPause)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
