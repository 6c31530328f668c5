package bundle

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// change is a commit about threads and contexts in the making.
type change struct {
	*write.Batch
	stated map[structure.ContextID]struct{} // contexts by their ids in the bundle
	made   map[structure.ContextID]struct{} // contexts that it makes
	absent map[structure.ContextID]struct{} // parents that it makes and deletes again
	report ImportReport
}

// facts adds what is new of threads and contexts.
func (im *importer) facts(c *structure.Commit) error {
	set := func() map[structure.ContextID]struct{} { return make(map[structure.ContextID]struct{}) }
	to := change{Batch: im.batch(), stated: set(), made: set(), absent: set()}
	defer im.writer.Release(to.Batch)
	to.Reset(c.Time)
	for i := 0; i < len(c.Records); {
		end := i + 1
		switch r := c.Records[i].(type) {
		case *structure.Thread:
			if err := im.newThread(&to, r); err != nil {
				return err
			}
		case *structure.Context:
			for end < len(c.Records) && isAboutContext(c.Records[end]) {
				end++
			}
			if err := im.context(&to, c.Time, r, c.Records[i+1:end]); err != nil {
				return err
			}
		default:
			return im.corrupt("a %v among contexts", r.Kind())
		}
		i = end
	}
	for _, id := range slices.SortedFunc(maps.Keys(to.absent), structure.ContextID.Compare) {
		to.DeleteContext(id)
	}
	if _, err := im.commit(to.Batch); err != nil {
		return err
	}
	im.report.Threads += to.report.Threads
	im.report.Contexts += to.report.Contexts
	im.report.Moved += to.report.Moved
	return nil
}

func isAboutContext(r structure.Record) bool {
	return r.Kind() == structure.KindReflog || r.Kind() == structure.KindSummary
}

// newThread adds a thread that is not here. One that is here keeps its runs from now on if
// the bundle's does: they follow.
func (im *importer) newThread(to *change, t *structure.Thread) error {
	ours, err := im.engine.Thread(im.ctx, t.ID)
	switch {
	case errors.Is(err, backend.ErrNotFound):
		to.ExpectThread(t.ID, nil)
		to.Adopt(t)
		to.report.Threads++
		return nil
	case err == nil && t.Keeps && !ours.Keeps:
		is := *ours
		is.Keeps = true
		to.ExpectThread(t.ID, ours)
		to.StateThread(is)
	}
	return err
}

// theirs is a context of the bundle in terms of the store.
type theirs struct {
	*structure.Context
	reflog    []*structure.Reflog
	summaries []*structure.Summary
}

// as returns what the bundle says of a context under another id.
func (t *theirs) as(id structure.ContextID) {
	t.ID = id
	for _, r := range t.reflog {
		r.Context = id
	}
	for _, s := range t.summaries {
		s.Context = id
	}
}

func (im *importer) contextHere(id structure.ContextID) structure.ContextID {
	if own, ok := im.contexts[id]; ok {
		return own
	}
	return id
}

func (im *importer) translate(c *structure.Context, about []structure.Record) theirs {
	c.Base, c.Tip, c.Parent = im.here(c.Base), im.here(c.Tip), im.contextHere(c.Parent)
	t := theirs{Context: c}
	for _, r := range about {
		switch r := r.(type) {
		case *structure.Reflog:
			r.From, r.To = im.here(r.From), im.here(r.To)
			t.reflog = append(t.reflog, r)
		case *structure.Summary:
			r.From, r.To = im.here(r.From), im.here(r.To)
			t.summaries = append(t.summaries, r)
		}
	}
	return t
}

// context adds a context, or what is new of it, as of a time.
func (im *importer) context(to *change, at time.Time, c *structure.Context, about []structure.Record) error {
	t := im.translate(c, about)
	id := c.ID
	if _, twice := to.stated[id]; twice {
		return im.corrupt("context %v is there twice", id)
	}
	to.stated[id] = struct{}{}
	for depth := 0; ; depth++ {
		var ours *backend.Context
		var reflog []*structure.Reflog
		verdict := apart
		// The id may be that of another context of the bundle: a copy that came along, or
		// one that is made of what stood apart.
		if _, taken := im.taken[t.ID]; !taken {
			is, err := im.engine.Context(im.ctx, t.ID)
			if errors.Is(err, backend.ErrNotFound) {
				im.taken[t.ID] = struct{}{}
				return im.newContext(to, &t)
			}
			if err != nil {
				return err
			}
			ours = &is
			if verdict, reflog, err = im.compare(ours, &t); err != nil {
				return err
			}
		}
		if verdict == apart {
			switch {
			case ours != nil && depth == 0 && im.o.OnConflict == Fail:
				return &ConflictError{Context: id, Ours: ours.Tip, Theirs: t.Tip}
			case ours != nil && depth == 0 && im.o.OnConflict == TakeTheirs && sameOrigin(ours, &t):
				im.report.Conflicts = append(im.report.Conflicts, Conflict{id, id})
				verdict = replaced
			default:
				t.as(structure.DeriveID[structure.ContextID]("bundle", t.ID.String()))
				im.contexts[id] = t.ID
				if depth == 0 {
					im.report.Conflicts = append(im.report.Conflicts, Conflict{Context: id})
				}
				im.report.Conflicts[len(im.report.Conflicts)-1].Theirs = t.ID
				continue
			}
		}
		im.taken[t.ID] = struct{}{}
		return im.update(to, at, ours, &t, verdict, reflog)
	}
}

func sameOrigin(ours *backend.Context, t *theirs) bool {
	return ours.Thread == t.Thread && ours.Parent == t.Parent && ours.Base == t.Base
}

// newContext adds a context. Its parent may have been deleted, or not have been
// chosen: the context keeps it all the same.
func (im *importer) newContext(to *change, t *theirs) error {
	if _, made := to.made[t.Parent]; !made && !t.Parent.IsZero() {
		_, err := im.engine.Context(im.ctx, t.Parent)
		if errors.Is(err, backend.ErrNotFound) {
			if _, there := to.absent[t.Parent]; !there {
				to.absent[t.Parent] = struct{}{}
				to.ExpectContext(t.Parent, nil)
				to.NewContext(write.Context{ID: t.Parent, CreatedAt: t.CreatedAt})
			}
		} else if err != nil {
			return err
		}
	}
	if _, absent := to.absent[t.ID]; absent {
		return im.corrupt("context %v stands behind its child", t.ID)
	}
	to.made[t.ID] = struct{}{}
	to.ExpectContext(t.ID, nil)
	to.Adopt(t.Context)
	for _, r := range t.reflog {
		to.Adopt(r)
	}
	to.report.Contexts++
	return im.summaries(to, t.summaries)
}

// verdict says how a context here relates to the same one in the bundle.
type verdict int

const (
	level    verdict = iota // both say the same
	ahead                   // it has gone on here
	behind                  // it has gone on in the bundle
	apart                   // both
	replaced                // both, and ours is given up for theirs
)

// compare says who has gone on, and returns the entries of the bundle's reflog that
// ours lacks. A context that was rewound has gone on, as its reflog tells.
func (im *importer) compare(ours *backend.Context, t *theirs) (verdict, []*structure.Reflog, error) {
	var own []*structure.Reflog
	for r, err := range im.engine.Reflog(im.ctx, ours.ID) {
		if err != nil {
			return 0, nil, err
		}
		own = append(own, r)
	}
	added, err := lacking(t.reflog, own)
	if err != nil {
		return 0, nil, err
	}
	only, err := lacking(own, t.reflog)
	if err != nil {
		return 0, nil, err
	}
	if !sameOrigin(ours, t) {
		return apart, nil, nil
	}
	if ours.Tip == t.Tip {
		return level, added, nil
	}
	movedThere, err := im.wasAt(added, ours.Tip)
	if err != nil {
		return 0, nil, err
	}
	movedHere, err := im.wasAt(only, t.Tip)
	if err != nil {
		return 0, nil, err
	}
	if movedThere != movedHere {
		if movedThere {
			return behind, added, nil
		}
		return ahead, nil, nil
	}
	one, err := im.engine.Digest(im.ctx, ours.Tip)
	if err != nil {
		return 0, nil, err
	}
	if other, err := im.engine.Digest(im.ctx, t.Tip); err != nil || one == other {
		return level, added, err
	}
	if !movedThere {
		if on, err := structure.IsAncestor(ours.Tip, t.Tip, im.lookup()); err != nil || on {
			return behind, added, err
		}
		if on, err := structure.IsAncestor(t.Tip, ours.Tip, im.lookup()); err != nil || on {
			return ahead, nil, err
		}
	}
	return apart, nil, nil
}

func (im *importer) lookup() structure.RunLookup { return backend.Runs(im.ctx, im.engine) }

// wasAt reports whether any of the moves left a history that had come past a span.
func (im *importer) wasAt(moves []*structure.Reflog, span structure.SpanRef) (bool, error) {
	for _, m := range moves {
		if on, err := structure.IsAncestor(span, m.From, im.lookup()); err != nil || on {
			return on, err
		}
	}
	return false, nil
}

// lacking returns the entries of one reflog that another lacks.
func lacking(of, other []*structure.Reflog) ([]*structure.Reflog, error) {
	there := make(map[string]int, len(other))
	for _, r := range other {
		b, err := structure.MarshalRecord(r)
		if err != nil {
			return nil, err
		}
		there[string(b)]++
	}
	var out []*structure.Reflog
	for _, r := range of {
		b, err := structure.MarshalRecord(r)
		if err != nil {
			return nil, err
		}
		if there[string(b)] > 0 {
			there[string(b)]--
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

// update adds to a context that is here what is new of it, as of a time.
func (im *importer) update(to *change, at time.Time, ours *backend.Context, t *theirs, v verdict, reflog []*structure.Reflog) error {
	before, _ := to.Size()
	if v == behind || v == replaced {
		is := ours.Context
		is.Overrides, is.Metadata, is.Set = t.Overrides, t.Metadata, t.Set
		if !structure.Equal(&is, &ours.Context) {
			to.StateContext(is)
		}
		to.Point(ours.ID, t.Tip)
		to.report.Moved++
	} else if v == level && ours.Tip == t.Tip && at.UnixMilli() > ours.MovedAt {
		to.Point(ours.ID, t.Tip) // it went and came back
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

func (im *importer) summaries(to *change, added []*structure.Summary) error {
	says := make(map[content.ID]bool)
	for _, s := range added {
		to.Adopt(s)
		says[s.Content] = true
	}
	return im.needs(says)
}

// later reports whether a time is after another, as they are kept.
func later(a, b time.Time) bool { return a.UnixMilli() > b.UnixMilli() }
