package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

const (
	// mostGathered is the largest number of commits in a row.
	mostGathered = 256
	// mostContended is the number of turns that lock the store first after another process wrote.
	mostContended = 16
)

// pending is a commit that waits for its turn.
type pending struct {
	ctx     context.Context
	commit  *structure.Commit
	o       backend.Options
	full    bool
	taken   atomic.Bool // by the turn, or by a caller who no longer waits
	receipt backend.Receipt
	err     error
	done    chan struct{}
}

// Apply implements backend.Engine. Commits that arrive during a turn share the next.
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if ctx.Err() != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	if o.Durability == backend.DefaultDurability {
		o.Durability = e.o.Durability
	}
	p := &pending{ctx: ctx, commit: c, o: o, full: o.Durability == backend.Full, done: make(chan struct{})}
	p.o.Durability = backend.Normal // in the replica
	select {
	case <-e.ctx.Done():
		return backend.Receipt{}, errClosed
	case <-ctx.Done():
		return backend.Receipt{}, context.Cause(ctx)
	case e.queue <- p:
	}
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-ctx.Done():
		if p.taken.CompareAndSwap(false, true) {
			return backend.Receipt{}, context.Cause(ctx)
		}
	case <-e.led:
	}
	// The turn has it now and uses the memory of the commit.
	select {
	case <-p.done:
	case <-e.led:
		select {
		case <-p.done:
		default:
			return backend.Receipt{}, errClosed
		}
	}
	return p.receipt, p.err
}

// lead takes turns for the commits that wait, until the engine is closed.
func (e *Engine) lead() {
	defer close(e.led)
	var batch []*pending
	for {
		select {
		case <-e.ctx.Done():
			return
		case p := <-e.queue:
			batch = append(batch, p)
		}
		for len(batch) > 0 {
			batch = e.takeTurn(batch)
		}
	}
}

// gather adds the waiting commits. Callers who were just answered may have another commit, so they
// run first.
func (e *Engine) gather(batch []*pending) []*pending {
	for range 2 {
		runtime.Gosched()
		batch = e.waiting(batch)
	}
	return batch
}

// waiting adds the commits in the queue.
func (e *Engine) waiting(batch []*pending) []*pending {
	for len(batch) < mostGathered {
		select {
		case p := <-e.queue:
			batch = append(batch, p)
		default:
			return batch
		}
	}
	return batch
}

// take removes the commits whose callers no longer wait, and takes the others.
func take(batch []*pending) []*pending {
	return slices.DeleteFunc(batch, func(p *pending) bool { return !p.taken.CompareAndSwap(false, true) })
}

// takeTurn commits a batch and what waits, and returns what did not fit into the row.
func (e *Engine) takeTurn(batch []*pending) (rest []*pending) {
	e.turn.Lock()
	defer e.turn.Unlock()
	mine := take(e.gather(batch))
	if len(mine) == 0 {
		return nil
	}
	if len(mine) == 1 || e.careful {
		for _, p := range mine {
			p.receipt, p.err = e.alone(p)
		}
	} else {
		mine, rest = e.together(mine)
	}
	e.makeDurable(mine)
	for _, p := range mine {
		close(p.done)
	}
	for _, p := range rest {
		p.taken.Store(false)
	}
	return rest
}

// makeDurable flushes for commits of full durability that were applied before, or added nothing.
func (e *Engine) makeDurable(batch []*pending) {
	for _, p := range batch {
		if p.err != nil || !p.full || p.receipt.Number <= e.durable.Load().at().Number {
			continue
		}
		if _, err := e.flush(context.Background()); err != nil {
			p.receipt, p.err = backend.Receipt{}, fmt.Errorf("%w: %w", backend.ErrUncertain, err)
		}
	}
}

func durabilityOf(full bool) backend.Durability {
	if full {
		return backend.Full
	}
	return backend.Normal
}

// newID returns the id of a row.
func newID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// alone applies one commit. The log gets it before the replica.
func (e *Engine) alone(p *pending) (backend.Receipt, error) {
	for range mostRetries {
		receipt, err := e.aloneOnce(p)
		if !errors.Is(err, errBehind) && !errors.Is(err, errDiverged) {
			return receipt, err
		}
	}
	return backend.Receipt{}, fmt.Errorf("%d attempts: %w: %w", mostRetries, errBehind, backend.ErrConflict)
}

func (e *Engine) aloneOnce(p *pending) (receipt backend.Receipt, err error) {
	ctx := context.WithoutCancel(p.ctx)
	if e.replica == nil {
		if err := e.renew(ctx); err != nil {
			return receipt, err
		}
	}
	var t *turn
	if e.contended > 0 {
		if t, err = e.lock(ctx); err != nil {
			return receipt, err
		}
		defer func() { t.rollback() }()
	}
	var written *row
	var failed error
	e.write = func(c embedded.Sequenced) (uint64, error) {
		r := &row{first: c.Number, count: 1, id: newID(), data: appendCommit(nil, c)}
		if failed = r.seal(); failed != nil {
			return 0, failed
		}
		if t != nil {
			failed = e.writeTurn(ctx, t, r, durabilityOf(p.full))
		} else {
			failed = e.log.write(ctx, e.head, r, durabilityOf(p.full))
		}
		if failed == nil {
			written = r
		}
		return r.id, failed
	}
	receipt, err = e.replica.Apply(p.ctx, p.commit, p.o)
	switch {
	case written != nil:
		return receipt, e.taken(written, p.full, err)
	case errors.Is(failed, errBehind):
		e.contended = mostContended
		return receipt, errors.Join(errBehind, e.renew(ctx))
	case failed != nil || t != nil:
		return receipt, err
	}
	// It was refused or added nothing, in a state that another process may have changed.
	switch current := again(ctx, func(ctx context.Context) error { return e.log.has(ctx, e.head) }); {
	case current == nil:
		return receipt, err
	case errors.Is(current, errBehind):
		if failed := e.renew(ctx); failed != nil {
			return receipt, failed
		}
		return receipt, errBehind
	default:
		return receipt, current
	}
}

// taken records a row that the log has. The replica has it too, unless there is an error.
func (e *Engine) taken(r *row, full bool, err error) error {
	if err != nil {
		if dropped := e.drop(false); dropped != nil {
			err = errors.Join(err, dropped)
		}
		return fmt.Errorf("%w: %w", backend.ErrUncertain, err)
	}
	e.careful = false
	e.setHead(e.head.after(r))
	if full {
		e.durable.Load().know(r.last())
	}
	e.changed.announce()
	return nil
}

// lock begins a turn that holds the store, and lets the replica catch up.
func (e *Engine) lock(ctx context.Context) (*turn, error) {
	for range mostRetries {
		var t *turn
		var rows []row
		var more bool
		err := again(ctx, func(ctx context.Context) (err error) {
			t, rows, more, err = e.log.lock(ctx, e.head)
			return err
		})
		if errors.Is(err, errDiverged) {
			if err := e.renew(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			if t != nil { // cancelled after the lock
				t.rollback()
			}
			return nil, err
		}
		if e.contended = max(e.contended-1, 0); len(rows) > 0 {
			e.contended = mostContended
		}
		if err = e.follow(ctx, rows); err == nil && !more {
			e.complete()
			return t, nil
		}
		t.rollback()
		if err == nil {
			err = e.renew(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %w", errBehind, backend.ErrConflict)
}

// writeTurn writes a row in a turn and ends the turn.
func (e *Engine) writeTurn(ctx context.Context, t *turn, r *row, d backend.Durability) error {
	limited, cancel := context.WithTimeout(ctx, turnTime)
	err := t.append(limited, r, d)
	cancel()
	if err == nil || !uncertain(err) && !lost(err) {
		return explain(err)
	}
	return e.log.resolve(ctx, e.head, r, d, err)
}

// errFull is returned for a commit that does not fit into the row that is being made.
var errFull = errors.New("the row is full")

// together applies several commits, and those that come until the store is locked, as one row. The
// replica gets them before the log. It returns the commits with an outcome, and those that did not
// fit.
func (e *Engine) together(batch []*pending) (done, rest []*pending) {
	ctx := context.Background()
	if e.replica == nil {
		if err := e.renew(ctx); err != nil {
			fail(batch, err)
			return batch, nil
		}
	}
	t, err := e.lock(ctx)
	if err != nil {
		fail(batch, err)
		return batch, nil
	}
	defer t.rollback()
	// More commits came while another process held the store.
	taken := len(batch)
	batch = e.waiting(batch)
	batch = batch[:taken+len(take(batch[taken:]))]
	e.reads.Lock()
	defer e.reads.Unlock()
	r := &row{first: e.head.next(), id: newID()}
	full, size := false, 0
	e.write = func(c embedded.Sequenced) (uint64, error) {
		if size = len(r.data) + len(c.Payload) + 64; size > maxRow && r.count > 0 {
			return 0, errFull
		}
		r.data = appendCommit(r.data, c)
		r.count++
		return r.id, nil
	}
	done, wrote := batch, -1 // the first of the row
	for i, p := range batch {
		before := r.count
		if p.receipt, p.err = e.replica.Apply(p.ctx, p.commit, p.o); errors.Is(p.err, errFull) {
			done, rest = batch[:i], batch[i:]
			p.err = nil
			break
		}
		if r.count > before {
			full = full || p.full
		}
		if r.count > 0 && wrote < 0 {
			wrote = i
		}
	}
	if r.count == 0 {
		return done, rest
	}
	if err = r.seal(); err == nil {
		err = e.writeTurn(ctx, t, r, durabilityOf(full))
	}
	if err != nil {
		e.careful = true
		if dropped := e.dropLocked(true); dropped != nil {
			err = errors.Join(err, dropped)
		}
		if errors.Is(err, errBehind) { // nothing of it was applied: it is judged again
			for _, p := range done[wrote:] {
				p.receipt, p.err = backend.Receipt{}, nil
			}
			return done[:wrote], append(done[wrote:], rest...)
		}
		fail(done[wrote:], err) // these were judged in a state that never was
		return done, rest
	}
	if at, err := e.replica.Head(ctx); err != nil || at != r.last() {
		e.o.Logger.Error("replica and log differ", "replica", at, "log", r.last(), "err", err)
		_ = e.dropLocked(true)
		return done, rest
	}
	e.taken(r, full, nil)
	return done, rest
}

// fail fails commits.
func fail(batch []*pending, err error) {
	for _, p := range batch {
		p.receipt, p.err = backend.Receipt{}, err
	}
}

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return backend.UploadInCommit(ctx, e, chunks)
}

// Outcome implements backend.Engine.
func (e *Engine) Outcome(ctx context.Context, o backend.Once) (r backend.Receipt, err error) {
	if err := o.Valid(); err != nil {
		return r, err
	}
	return read(ctx, e.readers, func(replica *embedded.Engine) (backend.Receipt, error) { return replica.Outcome(ctx, o) })
}

// Forget implements backend.Engine. Other processes forget a session by age and number.
func (e *Engine) Forget(ctx context.Context, session [16]byte) error {
	_, err := read(ctx, e.readers, func(replica *embedded.Engine) (struct{}, error) { return struct{}{}, replica.Forget(ctx, session) })
	return err
}
