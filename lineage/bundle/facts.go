package bundle

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// facts adds new threads and contexts, and updates those that are in the store.
func (im *importer) facts(e *decodedEntry) error {
	to := commitDraft{Batch: im.batch(), stated: make(map[structure.ContextID]bool)}
	defer im.writer.Release(to.Batch)
	to.Reset(e.commit.Time)
	for i := range e.facts {
		f := &e.facts[i]
		var err error
		switch {
		case f.thread != nil:
			err = im.newThread(&to, f.thread)
		case f.remnant != nil:
			err = im.remnant(f.remnant)
		default:
			err = im.context(&to, e.commit.Time, &f.theirs)
		}
		if err != nil {
			return err
		}
	}
	if _, err := im.commit(to.Batch); err != nil {
		return err
	}
	im.report.Threads += to.report.Threads
	im.report.Contexts += to.report.Contexts
	im.report.Moved += to.report.Moved
	return nil
}

// newThread adds a thread that the store does not have. If the store has it and the bundle's thread keeps its runs,
// the thread keeps its runs from now on.
func (im *importer) newThread(to *commitDraft, t *structure.Thread) error {
	ours, err := im.engine.Thread(im.ctx, t.ID)
	switch {
	case errors.Is(err, backend.ErrNotFound):
		to.ExpectThread(t.ID, nil)
		to.Adopt(t)
		to.report.Threads++
		return nil
	case err == nil && t.Keeps && !ours.Keeps:
		changed := *ours
		changed.Keeps = true
		to.ExpectThread(t.ID, ours)
		to.StateThread(changed)
	}
	return err
}

// localize replaces the ids in a context by those in the store.
func (t *theirs) localize(im *importer) {
	t.Base, t.Tip, t.Parent, t.parent = im.local(t.Base), im.local(t.Tip), im.localContext(t.Parent), t.Parent
	for _, r := range t.reflog {
		r.From, r.To = im.local(r.From), im.local(r.To)
	}
	for _, s := range t.summaries {
		s.From, s.To = im.local(s.From), im.local(s.To)
	}
}

// context adds a context, or updates the one in the store. at is the time at which it moved.
func (im *importer) context(to *commitDraft, at time.Time, t *theirs) error {
	t.localize(im)
	id := t.ID
	for depth := 0; ; depth++ {
		var ours *backend.Context
		var reflog []*structure.Reflog
		verdict := diverged
		// Another context of the bundle may have this id already: an earlier copy of it made by a conflict, or one
		// that this import created.
		if !im.taken[t.ID] {
			found, err := im.engine.Context(im.ctx, t.ID)
			switch {
			case errors.Is(err, backend.ErrNotFound):
				if free, err := im.isFree(t); err != nil || free {
					return cmp.Or(err, im.newContext(to, t))
				}
			case err != nil:
				return err
			default:
				ours = &found
				if verdict, reflog, err = im.compare(ours, t); err != nil {
					return err
				}
			}
		}
		if verdict == diverged {
			switch {
			case ours != nil && depth == 0 && im.o.OnConflict == Fail:
				return &ConflictError{Context: id, Ours: ours.Tip, Theirs: t.Tip}
			case ours != nil && depth == 0 && im.o.OnConflict == TakeTheirs && sameOrigin(ours, t):
				im.report.Conflicts = append(im.report.Conflicts, Conflict{id, id})
				verdict = replaced
			default:
				t.rename(structure.DeriveID[structure.ContextID]("bundle", t.ID.String()))
				im.contexts[id] = t.ID
				if depth == 0 {
					im.report.Conflicts = append(im.report.Conflicts, Conflict{Context: id})
				}
				im.report.Conflicts[len(im.report.Conflicts)-1].Theirs = t.ID
				continue
			}
		}
		im.taken[t.ID] = true
		return im.update(to, at, ours, t, verdict, reflog)
	}
}

func sameOrigin(ours *backend.Context, t *theirs) bool {
	return ours.Thread == t.Thread && (ours.Parent == t.Parent || ours.Parent == t.parent) && ours.Base == t.Base
}

// newContext adds a context.
func (im *importer) newContext(to *commitDraft, t *theirs) error {
	if err := im.stateParent(to, t); err != nil {
		return err
	}
	im.taken[t.ID] = true
	to.ExpectContext(t.ID, nil)
	to.Adopt(t.Context)
	for _, r := range t.reflog {
		to.Adopt(r)
	}
	to.report.Contexts++
	return im.summaries(to, t.summaries)
}

// verdict is the result of comparing a context in the store with the same context in the bundle.
type verdict int

const (
	same     verdict = iota
	ahead            // advanced in the store
	behind           // advanced in the bundle
	diverged         // advanced in both
	replaced         // advanced in both, and theirs replaces ours
)

// compare compares a context in the store with that in the bundle. It also returns the entries of the bundle's reflog
// that the store does not have. A context that was rewound, according to its reflog, has advanced too.
func (im *importer) compare(ours *backend.Context, t *theirs) (verdict, []*structure.Reflog, error) {
	var local []*structure.Reflog
	for r, err := range im.engine.Reflog(im.ctx, ours.ID) {
		if err != nil {
			return 0, nil, err
		}
		local = append(local, r)
	}
	added, only := without(t.reflog, local), without(local, t.reflog)
	if !sameOrigin(ours, t) {
		return diverged, nil, nil
	}
	if ours.Tip == t.Tip {
		return same, added, nil
	}
	movedThere, err := im.anyLeft(added, ours.Tip)
	if err != nil {
		return 0, nil, err
	}
	movedHere, err := im.anyLeft(only, t.Tip)
	if err != nil {
		return 0, nil, err
	}
	if movedThere != movedHere {
		if movedThere {
			return behind, added, nil
		}
		return ahead, nil, nil
	}
	localDigest, err := im.engine.Digest(im.ctx, ours.Tip)
	if err != nil {
		return 0, nil, err
	}
	if other, err := im.engine.Digest(im.ctx, t.Tip); err != nil || localDigest == other {
		return same, added, err
	}
	if !movedThere {
		if on, err := structure.IsAncestor(ours.Tip, t.Tip, im.lookup()); err != nil || on {
			return behind, added, err
		}
		if on, err := structure.IsAncestor(t.Tip, ours.Tip, im.lookup()); err != nil || on {
			return ahead, nil, err
		}
	}
	return diverged, nil, nil
}

func (im *importer) lookup() structure.RunLookup { return backend.Runs(im.ctx, im.engine) }

// anyLeft reports whether any of the moves abandoned a history that contains a span.
func (im *importer) anyLeft(moves []*structure.Reflog, span structure.SpanRef) (bool, error) {
	for _, m := range moves {
		if on, err := structure.IsAncestor(span, m.From, im.lookup()); err != nil || on {
			return on, err
		}
	}
	return false, nil
}

// without returns the entries of one reflog that are not in another.
func without(entries, other []*structure.Reflog) (rest []*structure.Reflog) {
	key := func(r *structure.Reflog) structure.Reflog {
		k := *r
		k.At = write.Kept(r.At)
		return k
	}
	counts := make(map[structure.Reflog]int, len(other))
	for _, r := range other {
		counts[key(r)]++
	}
	for _, r := range entries {
		if k := key(r); counts[k] > 0 {
			counts[k]--
			continue
		}
		rest = append(rest, r)
	}
	return rest
}

// update updates a context in the store. at is the time at which it moved in the bundle.
func (im *importer) update(to *commitDraft, at time.Time, ours *backend.Context, t *theirs, v verdict, reflog []*structure.Reflog) error {
	before, _ := to.Size()
	if v == behind || v == replaced {
		changed := ours.Context
		changed.Overrides, changed.Metadata, changed.Set = t.Overrides, t.Metadata, t.Set
		if !structure.Equal(&changed, &ours.Context) {
			to.StateContext(changed)
		}
		to.Point(ours.ID, t.Tip)
		to.report.Moved++
	} else if v == same && ours.Tip == t.Tip && at.UnixMilli() > ours.MovedAt {
		to.Point(ours.ID, t.Tip) // it moved away and back
	}
	for _, r := range reflog {
		to.Adopt(r)
	}
	if v == replaced {
		to.Log(ours.ID, ours.Tip, t.Tip, "import", im.writer.Now())
	}
	var known []structure.SummaryID
	for s, err := range im.engine.Summaries(im.ctx, ours.ID) {
		if err != nil {
			return err
		}
		known = append(known, s.ID)
	}
	added := slices.DeleteFunc(t.summaries, func(s *structure.Summary) bool { return slices.Contains(known, s.ID) })
	if records, _ := to.Size(); records+len(added) > before {
		to.ExpectContext(ours.ID, &ours.Context)
	}
	return im.summaries(to, added)
}

func (im *importer) summaries(to *commitDraft, added []*structure.Summary) error {
	used := make(map[content.ID]bool)
	for _, s := range added {
		to.Adopt(s)
		used[s.Content] = true
	}
	return im.noteErased(used)
}
