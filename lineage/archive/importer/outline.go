package importer

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// asideImporting is the kind of a context that protects the stored part of a conversation until the whole is stored. If an
// import is interrupted, the next one deletes the context.
const asideImporting = "importing"

// outline is what an import needs to know of the contexts of a thread in the store.
type outline struct {
	home     structure.Home
	contexts map[structure.ContextID]*outlined
	branches map[string]*outlined
	// at are the contexts of branches and asides, by what they point to.
	at map[point][]*outlined
	// importing are the contexts of interrupted imports: see asideImporting. The other fields ignore them.
	importing map[structure.ContextID]structure.Context
	// reach are the spans that the contexts lead to, and foreign those of them that belong to other threads.
	reach, foreign backend.Reach
	used           uint64 // Outlines.time of the last lookup
}

// outlined is a context of an outline.
type outlined struct {
	structure.Context
	branch string // its last name, empty for none
	aside  string
}

// point is a message in an aside.
type point struct {
	at    structure.SpanRef
	aside string
}

// outlineOf reads the outline of a thread.
func outlineOf(ctx context.Context, state backend.Reader, home structure.Home) (*outline, error) {
	o := &outline{
		home: home, contexts: make(map[structure.ContextID]*outlined), branches: make(map[string]*outlined), at: make(map[point][]*outlined),
		importing: make(map[structure.ContextID]structure.Context), reach: make(backend.Reach), foreign: make(backend.Reach),
	}
	names := make(map[structure.ContextID][]string)
	for b, err := range state.Branches(ctx, home.Thread, "", "") {
		if err != nil {
			return nil, err
		}
		names[b.Context] = append(names[b.Context], b.Name)
	}
	for c, err := range state.Contexts(ctx, home.Thread, structure.ContextID{}) {
		if err == nil {
			err = o.add(ctx, state, &c.Context, names[c.ID])
		}
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

// add adds a context with its names.
func (o *outline) add(ctx context.Context, state backend.Reader, c *structure.Context, names []string) error {
	aside := lineage.AsideOf(c.Metadata)
	if aside == asideImporting {
		o.importing[c.ID] = *c
		return nil
	}
	known := &outlined{Context: *c, aside: aside}
	o.contexts[c.ID] = known
	for _, name := range names {
		known.branch, o.branches[name] = name, known
	}
	o.point(known)
	return o.follow(ctx, state, c.Tip)
}

// point adds a context to at.
func (o *outline) point(c *outlined) {
	if c.Tip.IsZero() || c.aside == "" && c.branch == "" {
		return
	}
	p := point{c.Tip, c.aside}
	all := o.at[p]
	i, _ := slices.BinarySearchFunc(all, c.ID, func(other *outlined, id structure.ContextID) int { return other.ID.Compare(id) })
	o.at[p] = slices.Insert(all, i, c)
}

// follow adds the history that ends at a span.
func (o *outline) follow(ctx context.Context, state backend.Reader, at structure.SpanRef) error {
	known := len(o.reach)
	if err := o.reach.Follow(ctx, state, at); err != nil {
		return err
	}
	for range len(o.reach) - known { // the first runs on the way are new
		e := o.reach[at.Run]
		if e.Run.Home != o.home {
			o.foreign[at.Run] = e
		}
		at = e.Run.Parent
	}
	return nil
}

// base returns the spans of other threads that the contexts lead to, with those of interrupted imports.
func (o *outline) base(ctx context.Context, state backend.Reader) (backend.Reach, error) {
	if len(o.importing) == 0 {
		return o.foreign, nil
	}
	base := make(backend.Reach)
	for _, c := range o.importing {
		if err := base.Follow(ctx, state, c.Tip); err != nil {
			return nil, err
		}
	}
	for id, e := range base {
		if e.Run.Home == o.home {
			delete(base, id)
		}
	}
	for id, e := range o.foreign {
		if more := base[id]; more == nil || more.Last < e.Last {
			base[id] = e
		}
	}
	return base, nil
}

// held returns the contexts of interrupted imports by the runs that they protect.
func (o *outline) held() map[structure.RunID]structure.Context {
	held := make(map[structure.RunID]structure.Context, len(o.importing))
	for _, c := range o.importing {
		if other, ok := held[c.Tip.Run]; !ok || other.ID.Compare(c.ID) < 0 { // of several, always the same
			held[c.Tip.Run] = c
		}
	}
	return held
}

// continues reports whether a history continues after a span.
func (o *outline) continues(ctx context.Context, state backend.Reader, at structure.SpanRef) (bool, error) {
	if o == nil || len(o.reach) == 0 {
		return false, nil
	}
	if o.reach.Has(structure.SpanRef{Run: at.Run, Seq: at.Seq + 1}) {
		return true, nil
	}
	for run, err := range state.ForksAt(ctx, at) {
		if err != nil || o.reach[run.ID] != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// errOutdated means that an outline must be read again.
var errOutdated = errors.New("the outline is outdated")

// update adds or replaces a context that was changed.
func (o *outline) update(ctx context.Context, state backend.Reader, c *structure.Context) error {
	known := o.contexts[c.ID]
	delete(o.importing, c.ID)
	switch {
	case known == nil:
		var names []string
		for b, err := range state.BranchesOf(ctx, o.home.Thread, c.ID) {
			if err != nil {
				return err
			}
			names = append(names, b.Name)
		}
		slices.Sort(names)
		return o.add(ctx, state, c, names)
	case known.aside != lineage.AsideOf(c.Metadata):
		return errOutdated
	}
	was := known.Tip
	if was == c.Tip {
		known.Context = *c
		return nil
	}
	p := point{was, known.aside}
	if o.at[p] = slices.DeleteFunc(o.at[p], func(other *outlined) bool { return other == known }); len(o.at[p]) == 0 {
		delete(o.at, p)
	}
	known.Context = *c
	o.point(known)
	if err := o.follow(ctx, state, c.Tip); err != nil {
		return err
	}
	if !was.IsZero() && !o.leadsTo(c.Tip, was) {
		return errOutdated // what it led to before may not be reachable any more
	}
	return nil
}

// leadsTo reports whether the history that ends at a span of reach has another span.
func (o *outline) leadsTo(tip, at structure.SpanRef) bool {
	for ; !tip.IsZero(); tip = o.reach[tip.Run].Run.Parent {
		if tip.Run == at.Run {
			return at.Seq <= tip.Seq
		}
	}
	return false
}

// rename reads a branch again that was set or deleted.
func (o *outline) rename(ctx context.Context, state backend.Reader, name string) error {
	b, err := state.Branch(ctx, o.home.Thread, name)
	if errors.Is(err, lineage.ErrNotFound) {
		if o.branches[name] == nil {
			return nil
		}
		return errOutdated
	}
	if err != nil {
		return err
	}
	c := o.contexts[b.Context]
	was := o.branches[name]
	switch {
	case was != nil && was == c:
		return nil
	case was != nil || c == nil || c.branch != "":
		return errOutdated
	}
	c.branch, o.branches[name] = name, c
	if c.aside == "" { // else it is there already
		o.point(c)
	}
	return nil
}

// Outlines keeps what imports into a store have read of the contexts of large threads. An agent writes many files for
// one thread: with the outline of the thread, the import of each costs what is new in it, and not what the thread has.
// It must be used by one goroutine, for one store.
type Outlines struct {
	at  backend.Cursor // the state of the outlines
	all map[structure.ThreadID]*outline
	// time counts lookups. size is the number of contexts and runs in all outlines.
	time uint64
	size int
	// least is the smallest number of contexts of a thread whose outline is kept. most limits the total size of kept outlines.
	least, most int
}

// NewOutlines returns empty outlines.
func NewOutlines() *Outlines {
	return &Outlines{all: make(map[structure.ThreadID]*outline), least: leastOutlined, most: maxOutlined}
}

const (
	leastOutlined = 64
	maxOutlined   = 200_000
	// An outline is dropped after maxUnused lookups of other threads.
	maxUnused = 256
	// Outlines that are more than maxBehind commits old are read again.
	maxBehind = 512
)

// get returns the outline of a thread in a state of the store. With keep, it is kept for later imports.
func (o *Outlines) get(ctx context.Context, view backend.View, state backend.Reader, home structure.Home, keep bool) (*outline, error) {
	o.time++
	if err := o.advance(ctx, view, state); err != nil {
		return nil, err
	}
	if known := o.all[home.Thread]; known != nil {
		if known.home == home {
			known.used = o.time
			return known, nil
		}
		o.drop(home.Thread)
	}
	found, err := outlineOf(ctx, state, home)
	if err != nil || !keep || len(found.contexts) < o.least || found.size() > o.most {
		return found, err
	}
	for o.size+found.size() > o.most {
		o.drop(o.longestUnused())
	}
	if len(o.all) == 0 {
		if o.at, err = state.Head(ctx); err != nil {
			return nil, err
		}
	}
	found.used = o.time
	o.all[home.Thread] = found
	o.size += found.size()
	return found, nil
}

func (o *outline) size() int { return len(o.contexts) + len(o.reach) }

// longestUnused returns the thread whose outline was not used for the longest time.
func (o *Outlines) longestUnused() (oldest structure.ThreadID) {
	for id, known := range o.all {
		if oldest.IsZero() || known.used < o.all[oldest].used {
			oldest = id
		}
	}
	return oldest
}

func (o *Outlines) drop(id structure.ThreadID) {
	if known := o.all[id]; known != nil {
		o.size -= known.size()
		delete(o.all, id)
	}
}

// forget drops all outlines.
func (o *Outlines) forget() {
	clear(o.all)
	o.size = 0
}

// advance updates the outlines to a state of the store.
func (o *Outlines) advance(ctx context.Context, view backend.View, state backend.Reader) error {
	if len(o.all) == 0 {
		return nil
	}
	head, err := state.Head(ctx)
	if head == o.at || err != nil {
		return err
	}
	for id, known := range o.all {
		if o.time-known.used > maxUnused {
			o.drop(id)
		}
	}
	if head.Number < o.at.Number || head.Number-o.at.Number > maxBehind {
		o.forget()
	}
	if len(o.all) == 0 {
		return nil
	}
	changes, err := derived.Between(ctx, view, o.at, head)
	if errors.Is(err, backend.ErrDiverged) {
		o.forget()
		return nil
	}
	if err == nil {
		err = o.apply(ctx, state, changes)
	}
	if err != nil {
		o.forget()
		return err
	}
	o.at = head
	for o.size > o.most {
		o.drop(o.longestUnused())
	}
	return nil
}

// apply updates the outlines after changes.
func (o *Outlines) apply(ctx context.Context, state backend.Reader, changes *derived.Changes) error {
	for id, change := range changes.Threads {
		if change.Deleted {
			o.drop(id)
		}
	}
	update := func(known *outline, do func(*outline) error) error {
		before := known.size()
		err := do(known)
		o.size += known.size() - before
		if errors.Is(err, errOutdated) {
			o.drop(known.home.Thread)
			err = nil
		}
		return err
	}
	for id, change := range changes.Contexts {
		if change.Deleted {
			o.deleted(id)
		}
		c, err := state.Context(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if known := o.all[c.Thread]; known != nil && err == nil {
			err = update(known, func(known *outline) error { return known.update(ctx, state, &c.Context) })
		}
		if err != nil {
			return err
		}
	}
	for branch := range changes.Branches {
		known := o.all[branch.Thread]
		if known == nil {
			continue
		}
		if err := update(known, func(known *outline) error { return known.rename(ctx, state, branch.Name) }); err != nil {
			return err
		}
	}
	return nil
}

// deleted drops the outline with a context that was deleted. If the context exists, it was created again, possibly in
// another thread and without its names.
func (o *Outlines) deleted(id structure.ContextID) {
	for thread, known := range o.all {
		if delete(known.importing, id); known.contexts[id] != nil {
			o.drop(thread)
		}
	}
}
