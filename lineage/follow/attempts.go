package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Run brings the session files of agents into a store. It returns when everything is read with
// Options.Once, and else follows changes until the context ends, whose error it then returns. If the
// store fails, as on a full disk or while the process that owns it is gone, Run with Options.Once returns
// the error. Without it, Run waits, and follows again when the store works. It returns the error if the
// store is closed or damaged. Several runs may follow the same files into the same store: each message is
// added once.
func Run(ctx context.Context, store *lineage.Store, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	a := &attempts{events: o.Events, sent: make(map[sentEvent]bool)}
	o.Events = a.send
	for pause := storeFirst; ; pause = min(2*pause, storeLast) {
		err := follow(ctx, store, o, a)
		if o.Once || context.Cause(ctx) != nil || a.ends(store, err) {
			return err
		}
		if !a.failing {
			a.failing, pause = true, storeFirst
			a.events(Event{Kind: StoreFailed, Err: err})
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.Clock.At(o.Clock.Now().Add(pause)):
		}
	}
}

// After the store has failed, it is tried again after storeFirst, then after twice that time, and so on, up to
// storeLast.
const (
	storeFirst = time.Second
	storeLast  = 30 * time.Second
)

// attempts are the attempts of Run, each of which begins with what the store has.
type attempts struct {
	events func(Event)
	// failing is set since the store has failed, until an attempt has read and saved everything.
	failing bool
	// readOnly is set if the store has accepted nothing since it failed with ErrReadOnly.
	readOnly bool
	// sent are the events that a later attempt repeats.
	sent map[sentEvent]bool
}

type sentEvent struct {
	kind        Kind
	path, about string
}

// send sends an event of an attempt, unless an earlier attempt has sent it.
func (a *attempts) send(e Event) {
	switch e.Kind {
	case Waiting:
		if a.failing {
			a.events(Event{Kind: StoreWorks})
		}
		a.failing, a.readOnly = false, false
	case Found, Slow, Failed:
		sent := sentEvent{e.Kind, e.Path, e.Reason}
		if e.Err != nil {
			sent.about = e.Err.Error()
		}
		if a.failing && a.sent[sent] {
			return
		}
		a.sent[sent] = true
	}
	a.events(e)
}

// ends reports whether Run ends with an error of the store. A store whose disk has failed is opened again by its next
// use, so ErrReadOnly may pass.
func (a *attempts) ends(store *lineage.Store, err error) bool {
	for _, lasting := range []error{lineage.ErrClosed, lineage.ErrCorrupt, lineage.ErrDiverged, backend.ErrNewerFormat, backend.ErrOlderFormat} {
		if errors.Is(err, lasting) {
			return true
		}
	}
	before := a.readOnly
	a.readOnly = errors.Is(err, lineage.ErrReadOnly)
	return a.readOnly && (before || store.Damage() != nil)
}

// isStoreFailure reports whether reading a file has failed because the store takes no changes, and not because of what
// the file or its thread has.
func isStoreFailure(err error) bool {
	for _, failure := range []error{lineage.ErrClosed, lineage.ErrReadOnly, lineage.ErrLocked} {
		if errors.Is(err, failure) {
			return true
		}
	}
	if failed := (*importer.StoreError)(nil); !errors.As(err, &failed) {
		return false
	}
	return !slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// refusals are the errors with which a store refuses a change.
var refusals = []error{
	lineage.ErrNotFound, lineage.ErrExists, lineage.ErrConflict, lineage.ErrInvalid, lineage.ErrCorrupt, lineage.ErrErased, lineage.ErrExpired,
	lineage.ErrTooLarge, lineage.ErrOtherUser, lineage.ErrProtected,
}
