package project

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/structure"
)

// open reads the thread of a scope.
func (w *applier) open(ctx context.Context, s *scope) (*visibility, error) {
	v := &visibility{w: w, scope: s, visible: make(map[structure.RunID]*visibleRun)}
	if s.thread.IsZero() {
		return v, nil
	}
	var err error
	if v.record, err = w.state.Thread(ctx, s.thread); err != nil {
		return nil, err
	}
	v.reader = chat.NewThreadReader(w.Store, w.state, v.record, v.owned)
	return v, nil
}

// load determines which spans the scope sees: all of them in a full view, otherwise those of changed contexts that
// the database lacks.
func (v *visibility) load(ctx context.Context) error {
	if v.full && !v.fresh {
		if err := v.recallAll(ctx); err != nil {
			return err
		}
	}
	wholeThread := v.full && v.record != nil
	for c, err := range v.changedContexts(ctx) {
		if err == nil && !wholeThread {
			err = v.follow(ctx, c.Tip)
		}
		if err != nil {
			return err
		}
		v.written = append(v.written, c)
	}
	slices.SortFunc(v.written, byAge)
	if wholeThread {
		return v.addReach(ctx)
	}
	for _, run := range v.runs {
		last, err := v.w.state.Last(ctx, run)
		if err == nil {
			err = v.follow(ctx, last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recallAll reads which spans the database has.
func (v *visibility) recallAll(ctx context.Context) error {
	extents, err := lists.ReadAll(ctx, v.w.DB, scanExtent, scopeSQL.reach, v.key)
	for _, e := range extents {
		v.visible[e.run] = &visibleRun{has: e}
	}
	return err
}

// addReach adds all spans that can be seen from the thread.
func (v *visibility) addReach(ctx context.Context) error {
	reach, err := backend.ReachOf(ctx, v.w.state, v.record)
	if err != nil {
		return err
	}
	for id, extent := range reach {
		if v.visible[id] == nil {
			v.visible[id] = &visibleRun{}
		}
		v.visible[id].run, v.visible[id].last = extent.Run, extent.Last
	}
	return nil
}

// changedContexts yields the contexts to write.
func (v *visibility) changedContexts(ctx context.Context) func(yield func(backend.Context, error) bool) {
	if v.record != nil && v.full {
		return v.w.state.Contexts(ctx, v.thread, structure.ContextID{})
	}
	ids := v.scope.contexts
	if v.record == nil {
		ids = []structure.ContextID{v.context}
	}
	return func(yield func(backend.Context, error) bool) {
		for _, id := range ids {
			c, err := v.w.state.Context(ctx, id)
			if errors.Is(err, lineage.ErrNotFound) {
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// follow adds the history that ends at a span, up to the part that is known.
func (v *visibility) follow(ctx context.Context, at structure.SpanRef) error {
	runs := backend.Runs(ctx, v.w.state)
	for !at.IsZero() {
		l := v.visible[at.Run]
		if l != nil && l.run.ID == at.Run {
			l.last = max(l.last, at.Seq)
			return nil
		}
		run, err := runs(at.Run)
		if err != nil {
			return err
		}
		if l == nil {
			l = &visibleRun{}
			v.visible[at.Run] = l
			if !v.full {
				if err := v.recall(ctx, at.Run, l); err != nil {
					return err
				}
			}
		}
		l.run, l.last = run, at.Seq
		if !v.full && l.has.last > 0 {
			l.last = max(l.last, l.has.last)
			return nil // the database has the rest
		}
		at = run.Parent
	}
	return nil
}
