package postgres

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// durable is the last commit that is known to be durable: a synced write of this handle began after
// it saw the commit. It belongs to one replica, because the next may have another history.
type durable struct {
	mu sync.Mutex
	to backend.Cursor
}

func (d *durable) at() backend.Cursor {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.to
}

func (d *durable) know(at backend.Cursor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.Number > d.to.Number {
		d.to = at
	}
}

// changed wakes callers who wait for commits.
type changed struct {
	mu   sync.Mutex
	next chan struct{} // closed with the next commit; nil while nobody waits
}

func (c *changed) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

func (c *changed) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// flush makes durable what the replica has, and returns its last commit. It is errDiverged while
// there is no replica.
func (e *Engine) flush(ctx context.Context) (backend.Cursor, error) {
	durable, known := e.durable.Load(), e.known.Load()
	if known == nil {
		return backend.Cursor{}, errDiverged
	}
	if known.Cursor == durable.at() {
		return known.Cursor, nil
	}
	err := again(ctx, func(ctx context.Context) error { return e.log.flush(ctx, *known) })
	if err == nil {
		durable.know(known.Cursor)
	}
	return known.Cursor, err
}

// settle lets the replica catch up, makes that durable, and returns its last commit.
func (e *Engine) settle(ctx context.Context) (backend.Cursor, error) {
	for range mostRetries {
		if err := e.fresh(ctx); err != nil {
			return backend.Cursor{}, err
		}
		to, err := e.flush(ctx)
		if !errors.Is(err, errDiverged) {
			return to, err
		}
	}
	return backend.Cursor{}, backend.ErrDiverged
}

// Sync implements backend.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	_, err := e.settle(ctx)
	return err
}

// Feed implements backend.Engine. It yields durable commits. When the replica is dropped, it continues
// in the next one.
func (e *Engine) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	to, err := e.settle(ctx)
	if err != nil {
		return func(yield func(*structure.Commit, error) bool) { yield(nil, err) }
	}
	open := func(ctx context.Context) (opened resume.Opened[*embedded.Engine], err error) {
		opened.Interrupted = func(err error) bool { return e.dropped(e.expired(err)) }
		opened.Reader, err = read(ctx, newReaders(e, true), func(replica *embedded.Engine) (*embedded.Engine, error) { return replica, nil })
		return opened, err
	}
	all := resume.Paged(ctx, open, after, func(replica *embedded.Engine, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
		return replica.Feed(ctx, after)
	}, func(last *structure.Commit) backend.Cursor {
		return backend.Cursor{Number: last.Number, ID: last.ID}
	})
	return func(yield func(*structure.Commit, error) bool) {
		for c, err := range all {
			if err == nil && c.Number > to.Number || !yield(c, e.expired(err)) {
				return
			}
		}
	}
}

// The pause between two looks at the log grows while waiting.
const (
	shortWait = 10 * time.Millisecond
	longWait  = 500 * time.Millisecond
)

// Wait implements backend.Engine. It waits for durable commits.
func (e *Engine) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for pause := shortWait; ; pause = min(pause*3/2, longWait) {
		next := e.changed.wait()
		if err := e.fresh(ctx); err != nil {
			return backend.Cursor{}, err
		}
		err := e.held(func(replica *embedded.Engine) error {
			_, err := replica.Wait(now, after)
			return err
		})
		if err == nil {
			at, err := e.settle(ctx)
			if err != nil || at.Number > after.Number {
				return at, err
			}
		} else if errors.Is(err, backend.ErrExpired) { // the replica was dropped
			continue
		} else if !errors.Is(err, context.Canceled) {
			return backend.Cursor{}, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-next:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return backend.Cursor{}, context.Cause(ctx)
		}
		timer.Stop()
	}
}
