package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Apply implements backend.Engine. Commits that arrive during a batch share the next.
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if ctx.Err() != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	if o.Durability == backend.DefaultDurability {
		o.Durability = e.o.Durability
	}
	if o.Once != nil {
		if err := o.Once.Valid(); err != nil {
			return backend.Receipt{}, err
		}
	}
	p := &pending{ctx: ctx, commit: c, o: o, full: o.Durability == backend.Full, done: make(chan struct{})}
	// What needs no lock is done here. The first part hashes what the commit brings.
	if err := p.begin(); err != nil {
		return backend.Receipt{}, err
	}
	p.keys(e.cache.Load().last().epoch != 0)
	select {
	case <-e.ctx.Done():
		return backend.Receipt{}, errClosed
	case <-ctx.Done():
		return backend.Receipt{}, context.Cause(ctx)
	case e.queue <- p:
	}
	return e.await(p)
}

// await returns the outcome of a commit in the queue. After the end of the caller's context it waits only for a batch that has
// the commit, because that uses the memory of the commit.
func (e *Engine) await(p *pending) (backend.Receipt, error) {
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-p.ctx.Done():
		if p.claimed.CompareAndSwap(false, true) {
			return backend.Receipt{}, context.Cause(p.ctx)
		}
	case <-e.stopped:
	}
	select {
	case <-p.done:
	case <-e.stopped:
		select {
		case <-p.done:
		default:
			return backend.Receipt{}, errClosed
		}
	}
	return p.receipt, p.err
}

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return backend.UploadInCommit(ctx, e, chunks)
}

// lead writes the commits that wait, in batches, until the engine is closed.
func (e *Engine) lead() {
	defer func() {
		e.answering.ended.Wait()
		close(e.stopped)
	}()
	var batch []*pending
	for {
		select {
		case <-e.ctx.Done():
			return
		case p := <-e.queue:
			batch = append(batch, p)
		}
		for len(batch) > 0 {
			batch = e.commitBatch(batch)
		}
	}
}

// commitBatch commits a batch and what waits, and returns what did not fit into the row.
func (e *Engine) commitBatch(batch []*pending) (rest []*pending) {
	e.writing.Lock()
	defer e.writing.Unlock()
	claimed := claim(e.queue.gather(batch))
	if len(claimed) == 0 {
		return nil
	}
	done, rest := e.commitAsRow(claimed, true)
	e.answering.answer(done)
	for _, p := range rest {
		p.claimed.Store(false)
	}
	return rest
}

// commitAsRow writes commits as one row of the log. If more is set, commits that come until the store is locked join them.
// It returns the commits with an outcome, and those that did not fit.
func (e *Engine) commitAsRow(batch []*pending, more bool) (done, rest []*pending) {
	var err error
	for range mostRetries {
		done, rest, err = e.tryRow(batch, more)
		batch = append(done[:len(done):len(done)], rest...)
		if !errors.Is(err, errBehind) && !errors.Is(err, errDiverged) {
			break
		}
	}
	switch {
	case err == nil:
		return done, rest
	case errors.Is(err, errBehind), errors.Is(err, errDiverged):
		err = fmt.Errorf("%d attempts: %w: %w", mostRetries, err, backend.ErrConflict)
	case len(done) > 1 && !errors.Is(err, backend.ErrUncertain) && !isTransient(err): // perhaps because of one of them
		for _, p := range done { // one commit always fits
			e.commitAsRow([]*pending{p}, false)
		}
		return done, rest
	}
	fail(done, err)
	return done, rest
}
