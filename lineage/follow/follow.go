package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// Options configure a run. The zero value of each field is its default.
type Options struct {
	Choice
	// Once ends the run when everything has been read.
	Once bool
	// Machine is the machine that the files belong to. Default Environment.Machine().
	Machine Machine
	// Formats are the formats to read. Default formats.All().
	Formats []archive.Format
	// Limits protect against hostile files.
	Limits archive.Limits
	// Environment determines the folders of agents. Default NewEnvironment(nil).
	Environment *Environment
	// Events, when not nil, is called with events, by one goroutine.
	Events func(Event)
	// Clock is for tests.
	Clock Clock

	watch func() (notifier, error) // for tests
}

// Clock tells the time.
type Clock interface {
	Now() time.Time
	// At returns a channel that gets the time when it is at or later.
	At(at time.Time) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                   { return time.Now() }
func (systemClock) At(at time.Time) <-chan time.Time { return time.After(time.Until(at)) }

// withDefaults returns the options with defaults instead of zero values.
func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Environment == nil {
		if o.Environment, err = NewEnvironment(nil); err != nil {
			return o, err
		}
	}
	if o.Machine.ID == "" {
		if o.Machine, err = o.Environment.Machine(); err != nil {
			return o, err
		}
	}
	if o.Formats == nil {
		o.Formats = formats.All()
	}
	if o.Events == nil {
		o.Events = func(Event) {}
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.watch == nil {
		o.watch = newNotifier
	}
	return o, o.Choice.Check()
}

// run is a run in progress. All of its fields belong to one goroutine.
type run struct {
	options Options
	store   *lineage.Store // save syncs what is added
	kept    *kept
	clock   Clock
	places  []*folder
	files   map[string]*file
	// conversations are the source ids of the threads of all files, according to their states.
	conversations map[string]bool
	watch         watching
	queue         []*file // files to read, in this order
	// waiting are the files to examine again at a given time.
	waiting map[*file]time.Time
	active  []*file // files with open readers, the most recently used last
	// waits are the files that wait for a conversation: see State.Waits.
	waits map[string][]*file
	// outlines are what was read of the threads that many files belong to.
	outlines *importer.Outlines
	// outdated are the files whose recorded content is read again: an older version has read them, or they are gone and a
	// message of them was held back.
	outdated []*file
	// withRows are the databases whose stored rows are cached.
	withRows []*file
	unsaved  []*file
	saveAt   time.Time
	// folderErrors are the reported errors of folders, by path. changedFolders are those that are not saved, "" for none.
	folderErrors, changedFolders map[string]string

	// done and total are numbers of bytes: those read, and those to read, since the last Waiting. count is the number
	// of files read, databases how many of them are databases. told is set if nothing has happened since.
	done, total, count, databases int64
	told                          bool
}

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
		r.watch.close()
		saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
		defer cancel()
		var failed error
		for len(r.active) > 0 {
			f := r.active[0]
			failed = cmp.Or(failed, r.setAside(saving, f, r.closeReader(saving, f)))
		}
		failed = cmp.Or(failed, r.save(saving))
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
		if !r.told {
			if a.failing { // what is not saved is not done
				if err := r.save(ctx); err != nil {
					return err
				}
			}
			r.options.Events(Event{Kind: Waiting, Files: r.count, Bytes: r.done, Databases: r.databases})
			r.told, r.done, r.total, r.count, r.databases = true, 0, 0, 0, 0
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

// The states of files are saved when saveMost of them have changed, or after saveAfter. At the end of a run this
// takes at most saveTime.
const (
	saveMost  = 256
	saveAfter = 5 * time.Second
	saveTime  = time.Second
)

// newRun returns a run. The options have their defaults.
func newRun(ctx context.Context, store *lineage.Store, o Options) (*run, error) {
	r := &run{
		options: o, store: store.Unsynced(), kept: keptFor(store, o.Machine), clock: o.Clock,
		files: make(map[string]*file), conversations: make(map[string]bool), waiting: make(map[*file]time.Time),
		waits: make(map[string][]*file), outlines: importer.NewOutlines(), changedFolders: make(map[string]string),
	}
	states, err := r.kept.states(ctx)
	if err != nil {
		return nil, err
	}
	if r.folderErrors, err = r.kept.folderErrors(ctx); err != nil {
		return nil, err
	}
	for path, state := range states {
		f := &file{path: path, state: state, begunAgain: state.Waits != "" && state.Bytes == 0}
		if r.files[RecordedPath(path)] = f; state.Waits != "" {
			r.waits[state.Waits] = append(r.waits[state.Waits], f)
		}
		for _, id := range state.Conversations {
			r.conversations[id] = true
		}
	}
	err = r.choosePlaces()
	r.findOutdated()
	return r, err
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

// save saves what was recorded of files, and then the changed states.
func (r *run) save(ctx context.Context) error {
	for _, f := range slices.Clone(r.active) {
		if err := r.setAside(ctx, f, r.flush(ctx, f)); err != nil {
			return err
		}
	}
	for states := range slices.Chunk(r.unsaved, saveMost) {
		var put []*State
		for _, f := range states {
			put = append(put, f.state)
		}
		if err := r.kept.put(ctx, put); err != nil {
			return fmt.Errorf("save the state of %s: %w", amount.Plural(len(put), "file"), err)
		}
	}
	if len(r.changedFolders) > 0 {
		if err := r.kept.putFolderErrors(ctx, r.changedFolders); err != nil {
			return fmt.Errorf("save the errors of folders: %w", err)
		}
		clear(r.changedFolders)
	}
	if len(r.unsaved) > 0 { // readers leave it to this
		if err := r.store.Sync(ctx); err != nil {
			return err
		}
	}
	for _, f := range r.unsaved {
		f.unsaved, f.state.moved = false, ""
	}
	r.unsaved, r.saveAt = nil, time.Time{}
	return nil
}

// changed marks the state of a file as changed.
func (r *run) changed(f *file) {
	if f.unsaved {
		return
	}
	f.unsaved = true
	r.unsaved = append(r.unsaved, f)
	r.saveSoon()
}

// saveSoon saves what has changed, in saveAfter at the latest.
func (r *run) saveSoon() {
	if r.saveAt.IsZero() {
		r.saveAt = r.clock.Now().Add(saveAfter)
	}
}
