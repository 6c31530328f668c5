package bundle

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Write writes a bundle of one state of a store. Others may change the store meanwhile. If the state becomes
// unavailable, Write returns ErrExpired and the bundle is incomplete.
func Write(ctx context.Context, store *lineage.Store, w io.Writer, o WriteOptions) (report WriteReport, err error) {
	s, err := store.View().Snapshot(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out, err := newWriter(w)
	if err != nil {
		return report, err
	}
	defer out.close()
	e := exporter{
		ctx: ctx, from: s, out: out, o: o,
		seed: maphash.MakeSeed(), written: make(map[prefix]uint64), runs: make(map[structure.RunID]uint64), busy: make(map[structure.RunID]bool),
		sets: make(map[structure.SpanSetID]bool), threads: make(map[structure.ThreadID]bool), contexts: make(map[structure.ContextID]bool),
		pendingRuns: make(map[structure.RunID]bool),
	}
	if e.o.Have == nil {
		e.o.Have = NewInventory()
	}
	err = e.everything()
	if errors.Is(err, backend.ErrExpired) {
		err = fmt.Errorf("another process collected garbage or closed the store while the bundle was written, which is incomplete; write it again: %w", err)
	}
	if err != nil {
		return e.report, err
	}
	if err := out.end(); err != nil {
		return e.report, err
	}
	e.report.Bytes = out.written
	return e.report, nil
}

// group is the selected contexts of a thread, or those without a thread.
type group struct {
	thread   structure.ThreadID
	contexts []structure.ContextID // nil for all
	whole    bool                  // the whole thread is selected
}

func (e *exporter) everything() error {
	groups, err := e.groups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := e.group(g); err != nil {
			return err
		}
	}
	if err := e.flushFacts(); err != nil {
		return err
	}
	return e.values(len(e.o.Threads)+len(e.o.Contexts) == 0)
}

// group writes a thread with its contexts, their parents, and its names.
func (e *exporter) group(g group) error {
	if err := e.thread(g.thread); err != nil {
		return err
	}
	if g.contexts == nil {
		var err error
		if g.contexts, err = e.contextsOf(g.thread); err != nil {
			return err
		}
	}
	for _, id := range g.contexts {
		if err := e.contextAndParents(id); err != nil {
			return err
		}
	}
	if g.thread.IsZero() {
		return nil
	}
	t, err := e.from.Thread(e.ctx, g.thread)
	if err == nil && g.whole && t.Keeps {
		err = e.keptRuns(g.thread)
	}
	if err != nil {
		return err
	}
	return e.names(g, t)
}

// groups returns the selected threads and contexts in the order of their ids.
func (e *exporter) groups() ([]group, error) {
	var groups []group
	if len(e.o.Threads)+len(e.o.Contexts) == 0 {
		groups = append(groups, group{whole: true})
		for t, err := range e.from.Threads(e.ctx, structure.ThreadID{}) {
			if err != nil {
				return nil, err
			}
			groups = append(groups, group{thread: t.ID, whole: true})
		}
		return groups, nil
	}
	e.chosen = make(map[structure.ContextID]bool)
	parts := make(map[structure.ThreadID]*group)
	for _, id := range e.o.Threads {
		if _, err := e.from.Thread(e.ctx, id); err != nil {
			return nil, err
		}
		contexts, err := e.contextsOf(id)
		if err != nil {
			return nil, err
		}
		for _, c := range contexts {
			e.chosen[c] = true
		}
		parts[id] = &group{thread: id, whole: true, contexts: contexts}
	}
	for _, id := range e.o.Contexts {
		c, err := e.from.Context(e.ctx, id)
		if err != nil {
			return nil, err
		}
		g := parts[c.Thread]
		if g == nil {
			g = &group{thread: c.Thread}
			parts[c.Thread] = g
		}
		if !e.chosen[id] && !g.whole {
			g.contexts = append(g.contexts, id)
		}
		e.chosen[id] = true
	}
	for _, g := range parts {
		slices.SortFunc(g.contexts, structure.ContextID.Compare)
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b group) int { return a.thread.Compare(b.thread) })
	return groups, nil
}

// contextsOf returns the contexts of a thread, or those without a thread, in the order of their ids.
func (e *exporter) contextsOf(thread structure.ThreadID) ([]structure.ContextID, error) {
	ids := []structure.ContextID{}
	for c, err := range e.from.Contexts(e.ctx, thread, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if c.Thread == thread {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

func (e *exporter) isChosen(id structure.ContextID) bool { return e.chosen == nil || e.chosen[id] }

// thread writes a thread without its active context, which is written with the names. It writes nothing for the zero
// id.
func (e *exporter) thread(id structure.ThreadID) error {
	if id.IsZero() || e.threads[id] {
		return nil
	}
	e.threads[id] = true
	t, err := e.from.Thread(e.ctx, id)
	if err != nil {
		return err
	}
	t.Active = structure.ContextID{}
	e.report.Threads++
	return e.fact(t.UpdatedAt, t)
}

// fact adds records to the pending facts. They are written as one commit, whose time is at.
func (e *exporter) fact(at time.Time, records ...structure.Record) error {
	if !empty(&e.facts) && !e.facts.Time().Equal(write.Kept(at)) {
		if err := e.flushFacts(); err != nil {
			return err
		}
	}
	return e.addAfter(entryFacts, &e.facts, at, records...)
}

func (e *exporter) flushFacts() error { return e.flushAfter(entryFacts, &e.facts) }

// contextAndParents writes a context after its ancestors. For ancestors that are not selected or were deleted it
// writes remnants, because overrides are inherited from them.
func (e *exporter) contextAndParents(id structure.ContextID) error {
	var line []backend.Ancestor
	for a, err := range backend.Ancestors(e.ctx, e.from, id) {
		if err != nil {
			return err
		}
		if e.contexts[a.ID] {
			break
		}
		e.contexts[a.ID] = true
		a.Deleted = a.Deleted || !e.isChosen(a.ID)
		line = append(line, a)
	}
	var remnants []structure.Record
	for _, a := range slices.Backward(line) {
		if a.Deleted {
			remnants = append(remnants, &a.Remnant)
			continue
		}
		c, err := e.from.Context(e.ctx, a.ID)
		if err == nil {
			err = e.context(&c, remnants)
		}
		if err != nil {
			return fmt.Errorf("context %v: %w", a.ID, err)
		}
		remnants = nil
	}
	return nil
}

// context writes the history that a context refers to, then remnants, then the context with its reflog and summaries.
func (e *exporter) context(c *backend.Context, remnants []structure.Record) error {
	records := []structure.Record{&c.Context}
	refs := []structure.SpanRef{c.Tip, c.Base}
	for r, err := range e.from.Reflog(e.ctx, c.ID) {
		if err != nil {
			return err
		}
		records, refs = append(records, r), append(refs, r.From, r.To)
	}
	for s, err := range e.from.Summaries(e.ctx, c.ID) {
		if err != nil {
			return err
		}
		records, refs = append(records, s), append(refs, s.From, s.To)
		if err := e.content(s.Content); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if err := e.path(ref); err != nil {
			return err
		}
	}
	if !c.Set.IsZero() {
		if err := e.spanSet(c.Set); err != nil {
			return err
		}
	}
	if err := e.thread(c.Thread); err != nil {
		return err
	}
	e.report.Contexts++
	at := time.UnixMilli(c.MovedAt).UTC()
	for _, r := range remnants {
		if err := e.fact(at, r); err != nil {
			return err
		}
	}
	return e.fact(at, records...)
}

// keptRuns writes the runs that a thread keeps. The thread is written before them, so that a collection does not
// delete them during the import.
func (e *exporter) keptRuns(id structure.ThreadID) error {
	if err := e.flushFacts(); err != nil {
		return err
	}
	for run, err := range e.from.RunsOf(e.ctx, id, structure.RunID{}) {
		if err != nil {
			return err
		}
		last, err := e.from.Last(e.ctx, run.ID)
		if err != nil {
			return err
		}
		if err := e.path(last); err != nil {
			return err
		}
	}
	return nil
}

// names writes the branches and checkpoints of a thread, and the thread with its active context.
func (e *exporter) names(g group, t *structure.Thread) error {
	var records []structure.Record
	for b, err := range e.from.Branches(e.ctx, g.thread, "", "") {
		if err != nil {
			return err
		}
		if e.isChosen(b.Context) {
			records = append(records, b)
		}
	}
	for c, err := range e.from.Checkpoints(e.ctx, g.thread, "") {
		if err != nil {
			return err
		}
		if !g.whole {
			if on, err := e.onAny(c.Span, g.contexts); err != nil {
				return err
			} else if !on {
				continue
			}
		}
		if err := e.path(c.Span); err != nil {
			return err
		}
		records = append(records, c)
	}
	if !e.isChosen(t.Active) {
		t.Active = structure.ContextID{}
	}
	if err := e.flushFacts(); err != nil {
		return err
	}
	return e.commit(entryNames, t.UpdatedAt, append(records, t)...)
}

// onAny reports whether a span is in the history of any of the contexts.
func (e *exporter) onAny(span structure.SpanRef, contexts []structure.ContextID) (bool, error) {
	for _, id := range contexts {
		c, err := e.from.Context(e.ctx, id)
		if err != nil {
			return false, err
		}
		if on, err := structure.IsAncestor(span, c.Tip, e.lookup()); err != nil || on {
			return on, err
		}
	}
	return false, nil
}
