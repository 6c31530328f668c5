package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// withReader implements stateSource with the latest state. If that goes away meanwhile, the function is called again with the next
// one.
func (e *Engine) withReader(ctx context.Context, n need, fn func(*stateReader) error) (err error) {
	for range mostRetries {
		var t *stateReader
		if t, err = e.latest(ctx, n); err != nil {
			return err
		}
		if err = fn(t); !errors.Is(err, backend.ErrExpired) {
			break
		}
	}
	return err
}

// latest returns a reader of the latest state, with the requested entries.
func (e *Engine) latest(ctx context.Context, n need) (*stateReader, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.going.Done()
	c := e.cache.Load()
	r, err := e.log.latest(ctx, c.last(), n)
	if errors.Is(err, errUnfilled) { // a program of an earlier version wrote
		if err = e.fill(ctx); err == nil {
			c = e.cache.Load()
			r, err = e.log.latest(ctx, c.last(), n)
		}
	}
	if err != nil {
		return nil, e.ended(err)
	}
	if r.there {
		c.advance(r.state)
	} else { // of another epoch, or another history
		outdated := c
		c = newCache(r.state, e.o.CacheBytes)
		e.cache.CompareAndSwap(outdated, c)
	}
	t := e.readerOf(ctx, c, r.state)
	t.take(n, r.found)
	return t, nil
}

// Snapshot implements backend.Engine.
func (e *Engine) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	t, err := e.latest(ctx, need{})
	if err != nil {
		return nil, err
	}
	return newSnapshot(e, t), nil
}

// sequences returns the sequences of the latest state. The state and what is needed are one round trip. If the state goes
// away, a sequence continues in the next one.
func (e *Engine) sequences(n need) resume.Sequences {
	return resume.Sequences{Open: func(ctx context.Context) (resume.Opened[backend.Reader], error) {
		t, err := e.latest(ctx, n)
		if err != nil {
			return resume.Opened[backend.Reader]{}, err
		}
		s := newSnapshot(e, t)
		s.first = t
		return resume.Opened[backend.Reader]{Reader: s, Interrupted: e.interrupted}, nil
	}}
}

// interrupted reports whether a sequence ended because its state went away, and not because the engine was closed.
func (e *Engine) interrupted(err error) bool {
	return errors.Is(err, backend.ErrExpired) && !e.closed.Load()
}

// Path implements backend.Reader.
func (e *Engine) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	paths := e.sequences(pathNeed(tip, w))
	return paths.Path(ctx, tip, w, o)
}

// Stats implements backend.Reader.
func (e *Engine) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := e.Snapshot(ctx)
	if err != nil {
		return backend.Stats{}, err
	}
	return s.Stats(ctx)
}

// recentReader reads contexts as they were after the last commit of this process that changed them. Everything else it reads
// from the server.
type recentReader struct {
	backend.Reader // the engine
	engine         *Engine
}

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return recentReader{e, e} }

// Context implements backend.Reader.
func (r recentReader) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if c, ok := r.engine.cache.Load().contexts.Get(id); ok && !c.ID.IsZero() && !r.engine.closed.Load() {
		return c, nil
	}
	return r.Reader.Context(ctx, id)
}

// replaceCache replaces the cache after a collection, or when the log has another history.
func (e *Engine) replaceCache(ctx context.Context, outdated *cache) error {
	r, err := e.log.latest(ctx, known{}, need{})
	if err == nil {
		e.cache.CompareAndSwap(outdated, newCache(r.state, e.o.CacheBytes))
	}
	return err
}
