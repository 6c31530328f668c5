package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// beginnings returns the first spans in a context's thread that are alternatives to its own. A
// subagent that sees nothing or a copy of its parent's history begins a separate history, which is
// not an alternative to its parent's. Contexts outside threads have no alternatives.
func (s *Store) beginnings(ctx context.Context, head *backend.Context) ([]SpanRef, error) {
	own, err := s.beginning(ctx, head.Tip)
	if err != nil || head.Thread.IsZero() {
		return []SpanRef{own}, err
	}
	b := beginnings{store: s, thread: head.Thread, at: make(map[SpanRef]*beginning), sets: make(map[structure.SpanSetID]SpanRef)}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	if err := b.join(ctx); err != nil {
		return nil, err
	}
	var found []SpanRef
	for _, first := range b.order {
		if b.group(first) == b.group(own) {
			found = append(found, first)
		}
	}
	return found, nil
}

// beginning returns the first span of the history that ends at tip.
func (s *Store) beginning(ctx context.Context, tip SpanRef) (SpanRef, error) {
	if tip.IsZero() {
		return SpanRef{}, nil
	}
	return s.At(ctx, tip, 1)
}

// beginnings are the first spans in a thread, in groups of alternatives.
type beginnings struct {
	store  *Store
	thread ThreadID
	order  []SpanRef
	at     map[SpanRef]*beginning
	sets   map[structure.SpanSetID]SpanRef // a first span for each set
}

// beginning is the first span of a history. next leads to another one of its group; the last one points to itself.
// Zero is the group of the thread itself.
type beginning struct {
	entries []*Entry
	next    SpanRef
	begun   bool // by a context that still exists
}

// read collects the first spans of the thread.
func (b *beginnings) read(ctx context.Context) error {
	for run, err := range b.store.engine.RunsOf(ctx, b.thread, structure.RunID{}) {
		if err != nil {
			return err
		}
		last := SpanRef{}
		if run.Parent.IsZero() {
			last, err = b.store.engine.Last(ctx, run.ID)
		}
		if err != nil {
			return err
		}
		if last.IsZero() {
			continue
		}
		first := SpanRef{Run: run.ID, Seq: 1}
		entries, err := b.store.Span(ctx, first)
		if err != nil {
			return err
		}
		b.order, b.at[first] = append(b.order, first), &beginning{entries: entries, next: first}
	}
	return nil
}

// join merges the groups of alternatives.
func (b *beginnings) join(ctx context.Context) error {
	for c, err := range b.store.engine.Contexts(ctx, b.thread, ContextID{}) {
		if err != nil {
			return err
		}
		if !c.Base.IsZero() {
			continue
		}
		first, err := b.store.beginning(ctx, c.Tip)
		if err != nil {
			return err
		}
		if b.at[first] == nil {
			continue
		}
		b.at[first].begun = true
		if err := b.joinContext(ctx, &c, first); err != nil {
			return err
		}
	}
	for first, group := range b.at {
		if !group.begun {
			b.unite(first, SpanRef{})
		}
	}
	return nil
}

// joinContext merges the group of a context that began with an empty history with others.
func (b *beginnings) joinContext(ctx context.Context, c *backend.Context, first SpanRef) error {
	var parent backend.Context
	alone, err := b.isSubagent(ctx, c)
	if err == nil && !c.Parent.IsZero() {
		if parent, err = b.store.engine.Context(ctx, c.Parent); isNotFound(err) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	above, err := b.store.beginning(ctx, parent.Tip)
	if err != nil {
		return err
	}
	switch {
	case !c.Set.IsZero():
		if other, ok := b.sets[c.Set]; ok {
			b.unite(first, other)
		}
		b.sets[c.Set] = first
		if parent.Tip.IsZero() {
			if alone, err = b.isSubagent(ctx, &parent); alone || err != nil {
				return err // a subagent that has not chosen yet
			}
		}
		b.unite(first, above)
	case !alone:
		b.unite(first, SpanRef{})
	default:
		if old, ok := b.original(first, above); ok {
			b.unite(first, old)
		}
	}
	return nil
}

// isSubagent reports whether a context began a separate history and is neither a branch nor an
// alternative. Edits of a first message match too: see original.
func (b *beginnings) isSubagent(ctx context.Context, c *backend.Context) (bool, error) {
	if c.Parent.IsZero() || !c.Base.IsZero() || !c.Set.IsZero() {
		return false, nil
	}
	for _, err := range b.store.engine.BranchesOf(ctx, b.thread, c.ID) {
		return false, err
	}
	return true, nil
}

// original returns the first span that edit is derived from: the first one of the parent's history,
// else the oldest.
func (b *beginnings) original(edit, above SpanRef) (old SpanRef, ok bool) {
	for _, first := range b.order {
		if first == edit || !derives(b.at[edit].entries, b.at[first].entries) {
			continue
		}
		if first == above || !ok || old != above && b.at[first].entries[0].Commit < b.at[old].entries[0].Commit {
			old, ok = first, true
		}
	}
	return old, ok
}

// derives reports whether content of one span is derived from content of another.
func derives(edit, old []*Entry) bool {
	for _, e := range edit {
		for _, o := range old {
			if !e.Origin.ParentID.IsZero() && e.Origin.ParentID == o.Content {
				return true
			}
		}
	}
	return false
}

// group returns the representative of a group, zero for the group of the thread.
func (b *beginnings) group(first SpanRef) SpanRef {
	for group := b.at[first]; group != nil && group.next != first; group = b.at[first] {
		first = group.next
	}
	if b.at[first] == nil {
		return SpanRef{}
	}
	return first
}

// unite merges two groups.
func (b *beginnings) unite(x, y SpanRef) {
	x, y = b.group(x), b.group(y)
	if x.IsZero() {
		x, y = y, x
	}
	if !x.IsZero() {
		b.at[x].next = y
	}
}
