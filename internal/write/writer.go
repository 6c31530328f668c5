package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/requests"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Writer commits batches to an engine. It is safe for concurrent use.
type Writer struct {
	engine backend.Engine
	now    func() time.Time
	// busy has a lock for each context that had conflicting writers. The locks only save retries: the engine
	// detects conflicts in any case.
	busy     *contextLocks
	serial   semaphore.Semaphore // held by one of the changes that were overtaken often
	batches  *sync.Pool
	sessions requests.Sessions // of requests that must be applied once
	attached sync.Map
	// durability is that of commits.
	durability backend.Durability
}

// Attached returns the value that a package above the store keeps for it under a key. The first call creates
// it with make.
func (w *Writer) Attached(key any, make func() any) any {
	value, ok := w.attached.Load(key)
	if !ok {
		value, _ = w.attached.LoadOrStore(key, make())
	}
	return value
}

// New returns a writer to an engine. now returns the time of commits.
func New(engine backend.Engine, now func() time.Time) *Writer {
	return &Writer{
		engine: engine, now: now, busy: new(contextLocks), serial: semaphore.New(1),
		batches: &sync.Pool{New: func() any { return new(Batch) }},
	}
}

// On returns a writer to the stage of a transaction. All of its records have the time of that commit.
func (w *Writer) On(s *Stage) *Writer {
	now := func() time.Time { return s.batch.commit.Time }
	return &Writer{engine: s, now: now, busy: w.busy, serial: w.serial, batches: w.batches}
}

// With returns a writer to the same engine whose commits have a durability.
func (w *Writer) With(d backend.Durability) *Writer {
	return &Writer{engine: w.engine, now: w.now, busy: w.busy, serial: w.serial, batches: w.batches, durability: d}
}

// Of returns the writer of a *lineage.Store or of its transaction. Package lineage sets it, for the packages
// of this module that write to stores.
var Of func(store any) *Writer

// Engine returns the engine, or the stage of the transaction.
func (w *Writer) Engine() backend.Engine { return Inner(w.engine) }

// Now returns the time for a commit.
func (w *Writer) Now() time.Time { return w.now() }

// Batch returns an empty batch for a commit now. The caller releases it after use.
func (w *Writer) Batch() *Batch {
	b := w.batches.Get().(*Batch)
	b.Durability = w.durability
	b.Reset(w.now())
	return b
}

// Release returns the memory of a batch for reuse.
func (w *Writer) Release(b *Batch) {
	if cap(b.spans) <= mostKept && cap(b.commit.Records) <= mostRecordsKept {
		b.Reset(time.Time{})
		w.batches.Put(b)
	}
}

// Commit commits a batch, unless it is empty. If the outcome is uncertain, a batch with a request id is sent
// again.
func (w *Writer) Commit(ctx context.Context, b *Batch) (backend.Receipt, error) {
	if len(b.commit.Records) == 0 {
		return backend.Receipt{}, nil
	}
	receipt, err := w.engine.Apply(ctx, &b.commit, b.Options)
	for try := 1; b.Once != nil && errors.Is(err, backend.ErrUncertain) && ctx.Err() == nil && try < mostRepeats; try++ {
		repeated, failed := w.engine.Apply(ctx, &b.commit, b.Options)
		if failed != nil {
			continue // that says nothing of the first
		}
		return repeated, nil
	}
	return receipt, err
}

// mostRepeats limits how often a request is sent whose answer was lost.
const mostRepeats = 3

// Change is an operation that is committed.
type Change interface {
	// Fill reads the current state and fills an empty batch. It is called again after a conflict. It fails if
	// the state does not allow the change. An empty batch is not committed.
	Fill(ctx context.Context, b *Batch, t Try) error
}

// ErrPassed is returned by Fill if its reads are inconsistent because of concurrent changes.
var ErrPassed = fmt.Errorf("the state has passed: %w", backend.ErrConflict)

// Try describes the earlier attempts at a change.
type Try struct {
	// Number counts the attempts, from 0.
	Number int
	// Fresh is set if another commit extended the run that was to be extended: start a new run.
	Fresh bool
	// Err is the error of the last attempt.
	Err error
}

// Taken reports whether the last attempt was refused because something of a kind exists already. The change
// must look at the new state, or it fails again.
func (t Try) Taken(subject string) bool { return About(t.Err, subject, backend.ErrExists) }

// Gone reports whether a commit was refused because garbage collection deleted an uploaded chunk: upload the
// body again.
func Gone(err error) bool { return About(err, "chunk", backend.ErrNotFound) }

// mostTries limits the attempts at a change.
const mostTries = 100

// Do commits a change. It tries again after conflicts.
func (w *Writer) Do(ctx context.Context, b *Batch, c Change) (receipt backend.Receipt, err error) {
	for t := (Try{}); ; t.Number++ {
		if t.Number > 0 {
			b.Reset(w.now())
		}
		if err = c.Fill(ctx, b, t); err == nil {
			if receipt, err = w.Commit(ctx, b); err == nil {
				return receipt, nil
			}
		} else if errors.Is(err, backend.ErrExpired) { // the process that had the store open has closed it
			err = fmt.Errorf("%w: %w", ErrPassed, err)
		} else if !errors.Is(err, ErrPassed) {
			return backend.Receipt{}, err
		}
		fresh := About(err, "span", backend.ErrConflict)
		if t.Err = err; t.Number == mostTries-1 || !(fresh && !t.Fresh || passed(err, b, t) || Gone(err)) {
			return backend.Receipt{}, err
		}
		t.Fresh = fresh
		if t.Number == serialAfter {
			done := w.serialize(ctx)
			defer done()
		}
	}
}

// Changes that were overtaken serialAfter times run one after another in this process. The wait is limited, because the
// change that runs may use the store and wait for another change.
const (
	serialAfter   = 3
	maxSerialWait = 100 * time.Millisecond
)

// serialize waits until no other such change runs, or for maxSerialWait. done lets the next one run.
func (w *Writer) serialize(ctx context.Context) (done func()) {
	ctx, cancel := context.WithTimeout(ctx, maxSerialWait)
	defer cancel()
	if w.serial.Acquire(ctx) != nil {
		return func() {}
	}
	return w.serial.Release
}

// passed reports whether a commit was refused because the state changed after it was read.
func passed(err error, b *Batch, t Try) bool {
	var tip *backend.TipError
	var subject *backend.SubjectError
	switch {
	case errors.As(err, &tip), errors.Is(err, ErrPassed):
		return true
	case !errors.As(err, &subject):
		return false
	case errors.Is(err, backend.ErrConflict):
	case errors.Is(err, backend.ErrExists):
		return b.expectsNone(subject.Subject)
	case errors.Is(err, backend.ErrNotFound):
		if t.Number >= serialAfter {
			return false // what is not there will not come by asking for it again
		}
	default:
		return false
	}
	switch subject.Subject {
	case "span":
		return b.places
	case "thread", "context", "branch", "checkpoint", "source id", "value", "run":
		return true
	}
	return false
}

// About reports whether an error is about a kind of record and has a reason.
func About(err error, subject string, reason error) bool {
	if err == nil {
		return false // without memory for what is not there
	}
	var failed *backend.SubjectError
	return errors.As(err, &failed) && failed.Subject == subject && errors.Is(err, reason)
}

// Upload stores the chunks of a large body. It returns the description as a block for a commit, with id and
// size filled in.
func (w *Writer) Upload(ctx context.Context, block content.Block, body io.Reader) (*structure.Block, error) {
	b := structure.Described(block)
	var err error
	b.ID, b.Tree, err = backend.Cut(ctx, w.engine, body)
	b.Size = b.Tree.Size
	return b, err
}

// Make is Do for a function.
func (w *Writer) Make(ctx context.Context, fill func(b *Batch, t Try) error) (backend.Receipt, error) {
	b := w.Batch()
	defer w.Release(b)
	return w.Do(ctx, b, changeFunc(fill))
}

type changeFunc func(b *Batch, t Try) error

func (f changeFunc) Fill(_ context.Context, b *Batch, t Try) error { return f(b, t) }

// Wanted reports whether the lock of a context may be held or waited for.
func (w *Writer) Wanted(id structure.ContextID) bool { return w.busy.wanted(id) }

// Lock takes the lock of a context.
func (w *Writer) Lock(id structure.ContextID) *ContextLock { return w.busy.lock(id) }
