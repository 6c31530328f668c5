package follow

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/lineage"
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

// stop stops watching and closes the files that are read. It saves what was read. After ctx has ended, it does so for saveTime:
// what is not saved then is read again by a later run.
func (r *run) stop(ctx context.Context) (failed error) {
	r.watch.close()
	saving, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		select {
		case <-saving.Done():
		case <-time.After(saveTime):
			cancel(errLate)
		}
	})()
	for len(r.active) > 0 {
		f := r.active[0]
		failed = cmp.Or(failed, r.setAside(saving, f, r.closeReader(saving, f)))
	}
	failed = cmp.Or(failed, r.save(saving))
	if context.Cause(saving) == errLate && (errors.Is(failed, errLate) || errors.Is(failed, context.Canceled)) {
		return nil
	}
	return failed
}

// errLate ends the saving of a run that was stopped.
var errLate = errors.New("saving took too long")

// follow is an attempt of Run. It ends with an error of the store or of the context.
func follow(ctx context.Context, store *lineage.Store, o Options, a *attempts) (err error) {
	r, err := newRun(ctx, store, o)
	if err != nil {
		return err
	}
	if !r.options.Once {
		if err := r.watch.begin(r.options.watch); err != nil {
			return err
		}
	}
	defer func() {
		failed := r.stop(ctx)
		if err == nil || context.Cause(ctx) != nil { // else the store has failed before
			err = errors.Join(err, failed)
		}
	}()
	r.scanAll(ctx)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.takeChanges(ctx)
		if found, err := r.readNext(ctx); err != nil {
			return err
		} else if found {
			continue
		}
		if !r.options.Once {
			if err := r.takeDue(ctx); err != nil {
				return err
			}
			if len(r.queue) > 0 {
				continue
			}
		}
		if !r.waitingSent {
			if a.failing { // what is not saved is not done
				if err := r.save(ctx); err != nil {
					return err
				}
			}
			r.options.Events(Event{Kind: Waiting, Files: r.count, Bytes: r.done, Databases: r.databases})
			r.waitingSent, r.done, r.total, r.count, r.databases = true, 0, 0, 0, 0
		}
		if r.options.Once {
			return r.settle(ctx)
		}
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
}

// readNext reads the next file, and reports whether there is one. Recorded content comes last.
func (r *run) readNext(ctx context.Context) (bool, error) {
	files, read := &r.queue, r.read
	if len(r.queue) == 0 {
		files, read = &r.outdated, r.readOutdated
	}
	if len(*files) == 0 {
		return false, nil
	}
	next := (*files)[0]
	*files = (*files)[1:]
	if err := read(ctx, next); err != nil {
		return false, err
	}
	if len(r.unsaved) < saveMost {
		return true, nil
	}
	return true, r.save(ctx)
}

// wait waits for a change of a file or until something is due.
func (r *run) wait(ctx context.Context) error {
	var timer <-chan time.Time
	if next := r.next(); !next.IsZero() {
		timer = r.clock.At(next)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.watch.ready():
	case <-timer:
	}
	return nil
}

// takeDue does what is due.
func (r *run) takeDue(ctx context.Context) error {
	now := r.clock.Now()
	if !r.saveAt.IsZero() && !now.Before(r.saveAt) {
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	for f, at := range r.waiting {
		if !now.Before(at) {
			delete(r.waiting, f)
			r.look(f)
		}
	}
	if err := r.closeReaders(ctx, maxReaders); err != nil {
		return err
	}
	r.poll(ctx, now)
	return nil
}

// next returns the time when something is due, or zero.
func (r *run) next() (next time.Time) {
	due := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	due(r.saveAt)
	due(r.watch.nextPoll(r.clock.Now()))
	for _, at := range r.waiting {
		due(at)
	}
	if len(r.active) > 0 {
		due(r.active[0].reader.used.Add(readerTime))
	}
	if len(r.withRows) > 0 {
		due(r.withRows[0].rows.used.Add(readerTime))
	}
	return next
}
