package follow

import (
	"cmp"
	"context"
	"errors"
	"syscall"
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
	a := &attempts{events: o.Events, sent: make(map[sentEvent]string)}
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
	// sent are the events that a later attempt repeats, with what each said last.
	sent map[sentEvent]string
}

type sentEvent struct {
	kind Kind
	path string
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
		event, said := sentEvent{e.Kind, e.Path}, e.Reason
		if e.Err != nil {
			said = e.Err.Error()
		}
		if before, ok := a.sent[event]; a.failing && ok && before == said {
			return
		}
		a.sent[event] = said
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

// storeFailed reports whether a file cannot be read because the store takes no changes, and not because of what the file
// or its thread has. A store that takes another change, the state of the file, has not failed, unless a disk was full, which may
// have room by then.
func (r *run) storeFailed(ctx context.Context, f *file, err error) bool {
	for _, failure := range []error{lineage.ErrClosed, lineage.ErrReadOnly, lineage.ErrLocked, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, failure) {
			return true
		}
	}
	failed := (*importer.StoreError)(nil)
	return errors.As(err, &failed) && r.kept.put(ctx, []*State{f.state}) != nil
}

// setAside lets a run continue without a file that cannot be read. It returns an error of the store or the context.
func (r *run) setAside(ctx context.Context, f *file, err error) error {
	if err != nil && (context.Cause(ctx) != nil || r.storeFailed(ctx, f, err)) {
		return cmp.Or(context.Cause(ctx), err)
	}
	if err != nil {
		r.fail(f, err)
	}
	return nil
}
