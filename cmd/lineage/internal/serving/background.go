package serving

import (
	"context"
	"sync"
)

// background runs one function at a time in a goroutine of its own.
type background struct {
	mu             sync.Mutex
	running, ended bool
	stop           context.CancelFunc
	done           sync.WaitGroup
}

// start calls do, unless a call is under way or the background has ended.
func (b *background) start(do func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running || b.ended {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	b.running, b.stop = true, stop
	b.done.Go(func() {
		defer stop()
		do(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.running = false
	})
}

// state reports whether a call is under way, and whether the background has ended.
func (b *background) state() (running, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running, b.ended
}

// end stops the call that is under way, and waits for it.
func (b *background) end() {
	b.mu.Lock()
	b.ended = true
	if b.stop != nil {
		b.stop()
	}
	b.mu.Unlock()
	b.done.Wait()
}
