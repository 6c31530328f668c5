package graph

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Labels returns the names in a thread: branches, checkpoints, and contexts without a name.
func Labels(ctx context.Context, store *lineage.Store, t *lineage.Thread) (map[lineage.SpanRef][]Label, error) {
	all := make(map[lineage.SpanRef][]Label)
	branches, err := t.Branches(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		all[b.Head] = append(all[b.Head], Label{Kind: KindBranch, Name: b.Name, Active: b.Active, Context: b.Context})
	}
	checkpoints, err := t.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range checkpoints {
		all[c.Span] = append(all[c.Span], Label{Kind: KindCheckpoint, Name: c.Name})
	}
	for c, err := range Unnamed(ctx, store, t.ID(), branches) {
		if err != nil {
			return nil, err
		}
		all[c.Tip] = append(all[c.Tip], Label{Kind: c.Kind, Name: c.ID.Short(), Context: c.ID})
	}
	return all, nil
}

// Context is a context and what it is.
type Context struct {
	backend.Context
	Kind Kind
}

// Unnamed yields the contexts of a thread that are none of its branches, oldest first.
func Unnamed(ctx context.Context, store *lineage.Store, thread lineage.ThreadID, branches []lineage.BranchInfo) iter.Seq2[Context, error] {
	named := make(map[lineage.ContextID]bool, len(branches))
	for i := range branches {
		named[branches[i].Context] = true
	}
	return func(yield func(Context, error) bool) {
		for c, err := range store.View().Contexts(ctx, thread, lineage.ContextID{}) {
			if err != nil {
				yield(Context{}, err)
				return
			}
			if named[c.ID] {
				continue
			}
			kind := KindOf(&lineage.ContextInfo{Set: c.Set, Base: c.Base, Parent: c.Parent, Metadata: c.Metadata})
			if !yield(Context{c, kind}, nil) {
				return
			}
		}
	}
}

// Of returns the graph of a thread: the histories of its contexts and checkpoints, and the messages that it keeps. It
// reads contexts, checkpoints and runs, and no messages.
func Of(ctx context.Context, store *lineage.Store, t *lineage.Thread) (*Graph, error) {
	state, err := store.View().Thread(ctx, t.ID())
	if err != nil {
		return nil, err
	}
	reach, err := backend.ReachOf(ctx, store.View(), state)
	if err != nil {
		return nil, err
	}
	g := New()
	for _, e := range reach.Extents() {
		g.Add(&Line{Run: e.Run.ID, After: g.Place(e.Run.Parent), Before: e.Run.Depth, Last: e.Last})
	}
	active, err := store.View().Context(ctx, state.Active)
	switch {
	case err == nil:
		g.SetCurrent(g.Place(active.Tip))
	case !errors.Is(err, lineage.ErrNotFound): // the active branch can have been deleted
		return nil, err
	}
	labels, err := Labels(ctx, store, t)
	for at, names := range labels {
		g.Labels[g.Place(at)] = names
	}
	return g, err
}
