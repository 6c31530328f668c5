package search

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// present is what the store has now, for a search of an index that is behind it.
type present struct {
	store    *lineage.Store
	user     string           // of the threads in scope, if not empty
	state    backend.Snapshot // nil until it is needed
	threads  map[lineage.ThreadID]backend.Reach
	contexts map[lineage.ContextID]backend.Reach // outside threads
}

func newPresent(store *lineage.Store, user string) *present {
	return &present{store: store, user: user, threads: make(map[lineage.ThreadID]backend.Reach), contexts: make(map[lineage.ContextID]backend.Reach)}
}

func (p *present) close() {
	if p.state != nil {
		_ = p.state.Close()
	}
}

// narrow removes from a location the threads and contexts that do not see it now, or are not in scope.
func (p *present) narrow(ctx context.Context, location *searched.Location, seq int64) (err error) {
	if p.state == nil {
		if p.state, err = p.store.View().Snapshot(ctx); err != nil {
			return err
		}
	}
	threads, contexts := location.Threads, location.Contexts
	location.Threads, location.Contexts = nil, nil
	sees := func(r backend.Reach) bool { return r.Has(structure.SpanRef{Run: location.Run, Seq: uint64(seq)}) }
	if location.Kind == searched.Summary {
		_, err := p.state.Context(ctx, location.Owner)
		if errors.Is(err, lineage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		sees = func(r backend.Reach) bool { return r != nil } // a context does not change its thread
	}
	for _, id := range threads {
		r, err := p.thread(ctx, id)
		if err != nil {
			return err
		}
		if sees(r) {
			location.Threads = append(location.Threads, id)
		}
	}
	for _, id := range contexts {
		r, err := p.context(ctx, id)
		if err != nil {
			return err
		}
		if sees(r) {
			location.Contexts = append(location.Contexts, id)
		}
	}
	return nil
}

// thread returns what a thread sees, nil if it is gone or of another user.
func (p *present) thread(ctx context.Context, id lineage.ThreadID) (r backend.Reach, err error) {
	r, known := p.threads[id]
	if known {
		return r, nil
	}
	t, err := p.state.Thread(ctx, id)
	switch {
	case errors.Is(err, lineage.ErrNotFound):
	case err != nil:
		return nil, err
	case p.user == "" || t.UserID == p.user:
		if r, err = backend.ReachOf(ctx, p.state, t); err != nil {
			return nil, err
		}
	}
	p.threads[id] = r
	return r, nil
}

// context returns what a context sees, nil if it is gone.
func (p *present) context(ctx context.Context, id lineage.ContextID) (r backend.Reach, err error) {
	r, known := p.contexts[id]
	if known {
		return r, nil
	}
	c, err := p.state.Context(ctx, id)
	switch {
	case errors.Is(err, lineage.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		r = make(backend.Reach)
		if err := r.Follow(ctx, p.state, c.Tip); err != nil {
			return nil, err
		}
	}
	p.contexts[id] = r
	return r, nil
}
