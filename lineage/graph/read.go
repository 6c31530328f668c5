package graph

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Of returns the graph of a thread: the histories of its contexts and checkpoints, and the messages that it keeps. It
// reads one state of contexts, checkpoints and runs, and no messages.
func Of(ctx context.Context, store *lineage.Store, t *lineage.Thread) (*Graph, error) {
	return backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (*Graph, error) { return read(ctx, s, t.ID()) })
}

// Labels returns the names in a thread: branches, checkpoints, and contexts without a name.
func Labels(ctx context.Context, store *lineage.Store, t *lineage.Thread) (map[lineage.SpanRef][]Label, error) {
	return backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (map[lineage.SpanRef][]Label, error) {
		state, err := s.Thread(ctx, t.ID())
		if err != nil {
			return nil, err
		}
		return labels(ctx, s, state)
	})
}

func labels(ctx context.Context, from backend.Reader, t *structure.Thread) (map[lineage.SpanRef][]Label, error) {
	all := make(map[lineage.SpanRef][]Label)
	branches, err := backend.BranchesByCreation(ctx, from, t.ID)
	if err != nil {
		return nil, err
	}
	contexts := make(map[lineage.ContextID]backend.Context)
	var unnamed []Context
	for c, err := range Contexts(ctx, from, t.ID, branches) {
		if err != nil {
			return nil, err
		}
		if c.Kind == KindBranch {
			contexts[c.ID] = c.Context
		} else {
			unnamed = append(unnamed, c)
		}
	}
	for _, b := range branches {
		c, known := contexts[b.Context]
		if !known { // it may be of another thread
			if c, err = from.Context(ctx, b.Context); err != nil {
				return nil, err
			}
		}
		all[c.Tip] = append(all[c.Tip], Label{Kind: KindBranch, Name: b.Name, Active: b.Context == t.Active, Context: b.Context})
	}
	checkpoints, err := backend.CheckpointsByCreation(ctx, from, t.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range checkpoints {
		all[c.Span] = append(all[c.Span], Label{Kind: KindCheckpoint, Name: c.Name})
	}
	for _, c := range unnamed {
		all[c.Tip] = append(all[c.Tip], Label{Kind: c.Kind, Name: c.ID.Short(), Context: c.ID, About: lineage.AsideOf(c.Metadata)})
	}
	return all, nil
}

// Context is a context with its kind.
type Context struct {
	backend.Context
	Kind Kind
}

// Contexts yields the contexts of a thread, oldest first. The contexts of the given branches have the kind of
// branches.
func Contexts(ctx context.Context, from backend.Reader, thread lineage.ThreadID, branches []*structure.Branch) iter.Seq2[Context, error] {
	named := make(map[lineage.ContextID]bool, len(branches))
	for _, b := range branches {
		named[b.Context] = true
	}
	return func(yield func(Context, error) bool) {
		for c, err := range from.Contexts(ctx, thread, lineage.ContextID{}) {
			if err != nil {
				yield(Context{}, err)
				return
			}
			found := Context{c, KindBranch}
			if !named[c.ID] {
				found.Kind = KindOf(&lineage.ContextInfo{Set: c.Set, Base: c.Base, Parent: c.Parent, Metadata: c.Metadata})
			}
			if !yield(found, nil) {
				return
			}
		}
	}
}

// read returns the graph of a thread in a state of the store.
func read(ctx context.Context, from backend.Reader, id lineage.ThreadID) (*Graph, error) {
	state, err := from.Thread(ctx, id)
	if err != nil {
		return nil, err
	}
	reach, err := backend.ReachOf(ctx, from, state)
	if err != nil {
		return nil, err
	}
	g := New()
	for _, e := range reach.Extents() {
		g.Add(&Line{Run: e.Run.ID, After: g.Place(e.Run.Parent), Before: e.Run.Depth, Last: e.Last})
	}
	active, err := from.Context(ctx, state.Active)
	switch {
	case err == nil:
		g.SetCurrent(g.Place(active.Tip))
	case !errors.Is(err, lineage.ErrNotFound): // the active branch may have been deleted
		return nil, err
	}
	all, err := labels(ctx, from, state)
	for at, names := range all {
		g.Labels[g.Place(at)] = names
	}
	return g, err
}
