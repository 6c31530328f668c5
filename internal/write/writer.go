package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Writer commits batches to an engine. It is safe for concurrent use.
type Writer struct {
	engine backend.Engine
	now    func() time.Time
	// busy has the locks of contexts whose writers meet. Writing without a lock is not
	// wrong: the engine decides where two meet all the same.
	busy     *contextLocks
	meeting  chan struct{} // held by one of the changes that others came before
	batches  *sync.Pool
	sessions sessions
	attached sync.Map
}

// Attached returns what packages above a store keep for it: a value under a key of their own, which make makes
// the first time.
func (w *Writer) Attached(key any, make func() any) any {
	value, ok := w.attached.Load(key)
	if !ok {
		value, _ = w.attached.LoadOrStore(key, make())
	}
	return value
}

// New returns a writer to an engine. Now returns the time that commits are stamped with.
func New(engine backend.Engine, now func() time.Time) *Writer {
	return &Writer{
		engine: engine, now: now, busy: new(contextLocks), meeting: make(chan struct{}, 1),
		batches: &sync.Pool{New: func() any { return new(Batch) }},
	}
}

// On returns a writer to the stage of a transaction. All that it writes has the time of the commit.
func (w *Writer) On(s *Stage) *Writer {
	now := func() time.Time { return s.batch.commit.Time }
	return &Writer{engine: s, now: now, busy: w.busy, meeting: w.meeting, batches: w.batches}
}

// Of returns the writer of a *lineage.Store, which may be that of a transaction, for the packages of this module that
// write to one. Package lineage sets it.
var Of func(store any) *Writer

// Engine returns the engine that is written to, or the stage of the transaction.
func (w *Writer) Engine() backend.Engine { return Inner(w.engine) }

// Now returns the time for a commit.
func (w *Writer) Now() time.Time { return w.now() }

// Batch returns an empty batch for a commit at this time. Release it after use.
func (w *Writer) Batch() *Batch {
	b := w.batches.Get().(*Batch)
	b.Durability = backend.DefaultDurability
	b.Reset(w.now())
	return b
}

// Release lets the memory of a batch be used again.
func (w *Writer) Release(b *Batch) {
	if cap(b.spans) <= mostKept && cap(b.commit.Records) <= mostRecordsKept {
		b.Reset(time.Time{})
		w.batches.Put(b)
	}
}

// Commit commits a batch. An empty one is nothing to do. One that says which request it is
// is sent again where it is not known whether it was applied.
func (w *Writer) Commit(ctx context.Context, b *Batch) (backend.Receipt, error) {
	if len(b.commit.Records) == 0 {
		return backend.Receipt{}, nil
	}
	receipt, err := w.engine.Apply(ctx, &b.commit, b.Options)
	for try := 1; b.Once != nil && errors.Is(err, backend.ErrUncertain) && ctx.Err() == nil && try < mostRepeats; try++ {
		again, failed := w.engine.Apply(ctx, &b.commit, b.Options)
		if failed != nil {
			continue // that says nothing of the first
		}
		return again, nil
	}
	return receipt, err
}

// mostRepeats is how often a request is sent whose answer is lost.
const mostRepeats = 3

// Change is what becomes a commit.
type Change interface {
	// Fill fills an empty batch for the state that it finds. It is called again where others
	// came first, and fails where the new state does not allow the change. A batch that stays
	// empty is not committed.
	Fill(ctx context.Context, b *Batch, t Try) error
}

// ErrPassed is returned by Fill where what it read does not fit together, for others changed
// it meanwhile.
var ErrPassed = fmt.Errorf("the state has passed: %w", backend.ErrConflict)

// Try says what the attempts before have met.
type Try struct {
	// Number counts the attempts, from 0.
	Number int
	// Fresh is set where the run that was continued goes on elsewhere: begin another.
	Fresh bool
	// Err is why the last attempt was refused.
	Err error
}

// Taken reports whether the last attempt was refused because something of a kind exists that
// should not: the new state decides, and a change that does not look at it fails.
func (t Try) Taken(subject string) bool { return About(t.Err, subject, backend.ErrExists) }

// Gone reports whether a commit was refused because a collection took a piece of a body after
// its upload: upload it again.
func Gone(err error) bool { return About(err, "chunk", backend.ErrNotFound) }

// mostTries is how often a change is tried.
const mostTries = 100

// Do commits a change, and tries again while others come first.
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
		if t.Number == metOften {
			done := w.meet(ctx)
			defer done()
		}
	}
}

// Changes that others came before this often go one after another, those of this process.
// None waits for long: a change may use the store that it changes, and wait for another one.
const (
	metOften = 3
	longest  = 100 * time.Millisecond
)

func (w *Writer) meet(ctx context.Context) (done func()) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case w.meeting <- struct{}{}:
		return func() { <-w.meeting }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// passed reports whether a commit was refused because a state that it was made for has
// passed.
func passed(err error, b *Batch, t Try) bool {
	var tip *backend.TipError
	var is *backend.SubjectError
	switch {
	case errors.As(err, &tip), errors.Is(err, ErrPassed):
		return true
	case !errors.As(err, &is):
		return false
	case errors.Is(err, backend.ErrConflict):
	case errors.Is(err, backend.ErrExists):
		return b.expectsNone(is.Subject)
	case errors.Is(err, backend.ErrNotFound):
		if t.Number >= metOften {
			return false // what is not there will not come by asking for it again
		}
	default:
		return false
	}
	switch is.Subject {
	case "span":
		return b.places
	case "thread", "context", "branch", "checkpoint", "source id", "value", "run":
		return true
	}
	return false
}

// About reports whether an engine refused something for a reason that concerns a kind of
// thing.
func About(err error, subject string, reason error) bool {
	if err == nil {
		return false // without memory for what is not there
	}
	var is *backend.SubjectError
	return errors.As(err, &is) && is.Subject == subject && errors.Is(err, reason)
}

// Upload stores a body that is too large to be kept whole, and returns its block for the
// commit that uses it. Of the description it fills in the id and the size.
func (w *Writer) Upload(ctx context.Context, is content.Block, body io.Reader) (*structure.Block, error) {
	b := structure.Described(is)
	var err error
	b.ID, b.Tree, err = backend.Cut(ctx, w.engine, body)
	b.Size = b.Tree.Size
	return b, err
}

// Make commits what fill puts into a batch: see Do.
func (w *Writer) Make(ctx context.Context, fill func(b *Batch, t Try) error) (backend.Receipt, error) {
	b := w.Batch()
	defer w.Release(b)
	return w.Do(ctx, b, changeFunc(fill))
}

type changeFunc func(b *Batch, t Try) error

func (f changeFunc) Fill(_ context.Context, b *Batch, t Try) error { return f(b, t) }
