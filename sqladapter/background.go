package sqladapter

import (
	"context"
	"sync"
)

// background runs tasks in the background, one at a time, until it is closed.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []task
	working bool
	closed  bool
	done    sync.WaitGroup
}

// A waiting task is not started a second time under the same name.
type task struct {
	name string
	do   func(ctx context.Context)
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// start runs a task after those before it.
func (b *background) start(name string, do func(ctx context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	for _, t := range b.waiting {
		if t.name == name {
			return
		}
	}
	b.waiting = append(b.waiting, task{name, do})
	if !b.working {
		b.working = true
		b.done.Go(b.work)
	}
}

func (b *background) work() {
	for {
		b.mu.Lock()
		if len(b.waiting) == 0 || b.closed {
			b.working = false
			b.mu.Unlock()
			return
		}
		next := b.waiting[0]
		b.mu.Unlock()
		next.do(b.ctx)
		b.mu.Lock()
		b.waiting = b.waiting[1:]
		b.mu.Unlock()
	}
}

// close stops the work and waits for its end.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.done.Wait()
}
