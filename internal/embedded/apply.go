package embedded

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Apply implements backend.Engine. Hashing and encoding, the costly part, is done
// before the write lock is taken. The checks, one write to the journal and the index
// entries follow under the lock, the wait for durability after it (see commitQueue).
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	if err := e.begin(); err != nil {
		return backend.Receipt{}, err
	}
	defer e.end()
	if e.opt.ReadOnly {
		return backend.Receipt{}, fmt.Errorf("store: %w", backend.ErrReadOnly)
	}
	if o.Once != nil {
		if err := o.Once.Valid(); err != nil {
			return backend.Receipt{}, err
		}
	}
	if err := e.index.Throttle(); err != nil {
		return backend.Receipt{}, err
	}
	t := e.submissions.Get().(*submission)
	t.ctx, t.o = ctx, o
	receipt, err := e.apply(t, c)
	e.free(t)
	return receipt, err
}

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return backend.UploadInCommit(ctx, e, chunks)
}

func (e *Engine) apply(t *submission, c *structure.Commit) (backend.Receipt, error) {
	p := &t.p
	if err := p.Begin(c); err != nil {
		return backend.Receipt{}, err
	}
	t.durability = t.o.Durability
	if t.durability == backend.DefaultDurability {
		t.durability = e.opt.Durability
	}
	if _, err := e.leaveOut(t); err != nil {
		return backend.Receipt{}, err
	}
	if err := t.encode(); err != nil {
		return backend.Receipt{}, err
	}
	t.at, t.repeated, t.err = backend.Cursor{}, false, nil
	if t.durability == backend.Full {
		e.queue.commit(t)
	} else {
		e.write.Lock()
		e.commit(t)
		e.write.Unlock()
	}
	if t.panicked != nil {
		panic(t.panicked)
	}
	if t.err != nil {
		return backend.Receipt{}, t.err
	}
	if t.repeated {
		return backend.Receipt{Cursor: t.at, Repeated: true}, nil
	}
	return backend.Receipt{Cursor: t.at, Known: p.Known, KnownChunks: p.KnownChunks}, nil
}

// filter drops content that the store has, and encodes the remaining records again if
// any was dropped.
func (e *Engine) filter(t *submission) error {
	if changed, err := e.leaveOut(t); err != nil || !changed {
		return err
	}
	return t.encode()
}

func (e *Engine) leaveOut(t *submission) (changed bool, err error) {
	t.seen, t.raised = e.index.Number(), e.collecting.Raised.Load()
	return t.p.DropKnown((*stock)(e))
}

// free drops the references to the caller's data, and returns the submission to the pool.
func (e *Engine) free(t *submission) {
	t.ctx, t.o, t.err = nil, backend.Options{}, nil
	t.p.Release()
	e.submissions.Put(t)
}

// commitAll commits submissions one after another, and returns the last number.
func (e *Engine) commitAll(all []*submission) (last uint64) {
	e.write.Lock()
	defer e.write.Unlock()
	for _, t := range all {
		if e.commit(t); t.err == nil {
			last = max(last, t.at.Number)
		}
	}
	return last
}

// commit writes the commit of a submission and publishes it. The write lock must be held.
func (e *Engine) commit(t *submission) {
	defer func() {
		if value := recover(); value != nil {
			t.panicked, t.err = &panicked{value, debug.Stack()}, errPanicked
		}
	}()
	if e.committing {
		t.err = errPanicked
		return
	}
	e.committing = true
	t.at, t.err = e.commitNow(t)
	e.committing = false
}

// commitNow is commit without the handling of panics.
func (e *Engine) commitNow(t *submission) (at backend.Cursor, err error) {
	if t.o.Once != nil {
		if at, err = e.repeated(t.o.Once); err != nil || at.Number > 0 {
			t.repeated = true
			return at, err
		}
	}
	number := e.index.Number() + 1
	const replay = false
	e.state.Begin(number, replay)
	if err := judge.Expect(&e.state, t.o); err != nil {
		return at, err
	}
	p := &t.p
	if p.Contents > 0 && (e.index.Number() != t.seen || e.collecting.Raised.Load() != t.raised) {
		// Another commit may have stored the same content since, or a collection may have
		// deleted content that was known, or be about to.
		if err := e.filter(t); err != nil {
			return at, err
		}
	}
	if len(p.Commit.Records) == 0 {
		return read.CursorOf(e.index.State()), nil // the store has all of it
	}
	e.growFilter()
	p.Commit.Number = number
	defer e.judge.Release()
	if err := e.decide(t.ctx, &p.Commit, replay); err != nil {
		return at, err
	}
	if e.journal.ID() != e.own { // commits of another store were received
		e.journal.SetID(e.own)
	}
	frame, err := e.journal.Append(t.payload, e.sessions.trailer(t.o.Once), t.durability == backend.Normal)
	if err != nil {
		return at, err
	}
	e.publish(&p.Commit, frame, t.offsets)
	if frame.Position.Offset == journal.FirstOffset { // the previous segment was sealed
		e.schedule.segmentSealed()
	}
	return backend.Cursor{Number: number, ID: e.id}, nil
}
