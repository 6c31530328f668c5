package backend

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/structure"
)

// Extent is the visible part of a run: its spans up to Last.
type Extent struct {
	Run  structure.RunInfo
	Last uint64
}

// Reach is a part of a store's history: the visible parts of some runs.
type Reach map[structure.RunID]*Extent

// ReachOf returns the spans that a thread leads to: the histories of its contexts and checkpoints, and all of its
// runs if Keeps is set. It reads each context, checkpoint and run once, and no spans.
func ReachOf(ctx context.Context, from Reader, t *structure.Thread) (Reach, error) {
	if v, ok := from.(View); ok { // what is about to be read is read at once in one state
		return AtOnce(ctx, v, func(s Snapshot) (Reach, error) { return ReachOfAll(ctx, s, []*structure.Thread{t}) })
	}
	return reachOf(ctx, from, t)
}

// reachOf is ReachOf of a reader that has one state, which may be a View too, as the state of a transaction is.
func reachOf(ctx context.Context, from Reader, t *structure.Thread) (Reach, error) {
	reach := make(Reach)
	if err := reach.FollowContexts(ctx, from, t.ID); err != nil {
		return nil, err
	}
	for c, err := range from.Checkpoints(ctx, t.ID, "") {
		if err == nil {
			err = reach.Follow(ctx, from, c.Span)
		}
		if err != nil {
			return nil, err
		}
	}
	if !t.Keeps {
		return reach, nil
	}
	for run, err := range runsWithLasts(ctx, from, t.ID) {
		var last structure.SpanRef
		if err == nil {
			last, err = from.Last(ctx, run.ID)
		}
		if err == nil {
			err = reach.Follow(ctx, from, last)
		}
		if err != nil {
			return nil, err
		}
	}
	return reach, nil
}

// runsWithLasts yields the runs of a thread, whose last spans are about to be read.
func runsWithLasts(ctx context.Context, from Reader, thread structure.ThreadID) iter.Seq2[structure.RunInfo, error] {
	all := from.RunsOf(ctx, thread, structure.RunID{})
	ahead, ok := from.(ThreadsAhead)
	if !ok {
		return all
	}
	return func(yield func(structure.RunInfo, error) bool) {
		for page, err := range pages.Of(all, runsAtOnce) {
			ids := make([]structure.RunID, len(page))
			for i := range page {
				ids[i] = page[i].ID
			}
			if err == nil {
				err = ahead.LastsAhead(ctx, ids)
			}
			if err != nil {
				yield(structure.RunInfo{}, err)
				return
			}
			for _, run := range page {
				if !yield(run, nil) {
					return
				}
			}
		}
	}
}

// runsAtOnce is the number of runs whose last spans are read at once.
const runsAtOnce = 256

// ReachOfAll returns the spans that some threads lead to. Where reads are round trips, it takes some for all of them.
func ReachOfAll(ctx context.Context, s Snapshot, threads []*structure.Thread) (Reach, error) {
	if ahead, ok := s.(ThreadsAhead); ok {
		ids := make([]structure.ThreadID, len(threads))
		for i, t := range threads {
			ids[i] = t.ID
		}
		if err := ahead.ReachAhead(ctx, ids); err != nil {
			return nil, err
		}
	}
	all := make(Reach)
	for _, t := range threads {
		reach, err := reachOf(ctx, s, t)
		if err != nil {
			return nil, err
		}
		for _, e := range reach {
			all.Add(e)
		}
	}
	return all, nil
}

// Add adds the visible part of a run.
func (r Reach) Add(e *Extent) {
	if known := r[e.Run.ID]; known == nil || known.Last < e.Last {
		r[e.Run.ID] = e
	}
}

// HomeOf returns the thread that a run was written for, nil if it is gone or there was none. A later thread with its id is
// another one.
func HomeOf(ctx context.Context, from Reader, id structure.RunID) (*structure.Thread, error) {
	run, err := from.Run(ctx, id)
	if err != nil || run.Home.Thread.IsZero() {
		return nil, err
	}
	t, err := from.Thread(ctx, run.Home.Thread)
	if errors.Is(err, ErrNotFound) || err == nil && t.Home() != run.Home {
		return nil, nil
	}
	return t, err
}

// HomesOf returns HomeOf of several runs, nil also for those that are gone. Where reads are round trips, it takes some for all of
// them.
func HomesOf(ctx context.Context, s Snapshot, ids []structure.RunID) (map[structure.RunID]*structure.Thread, error) {
	if ahead, ok := s.(ThreadsAhead); ok {
		if err := homesAhead(ctx, s, ahead, ids); err != nil {
			return nil, err
		}
	}
	homes := make(map[structure.RunID]*structure.Thread, len(ids))
	for _, id := range ids {
		t, err := HomeOf(ctx, s, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		homes[id] = t
	}
	return homes, nil
}

// homesAhead reads at once runs that are about to be read, and then their threads.
func homesAhead(ctx context.Context, s Snapshot, ahead ThreadsAhead, ids []structure.RunID) error {
	if err := ahead.RunsAhead(ctx, ids); err != nil {
		return err
	}
	var threads []structure.ThreadID
	for _, id := range ids {
		run, err := s.Run(ctx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err == nil && !run.Home.Thread.IsZero() {
			threads = append(threads, run.Home.Thread)
		}
	}
	return ahead.ThreadsAhead(ctx, threads)
}

// OwnReach returns the spans that belong to a thread, whether or not anything leads to them.
func OwnReach(ctx context.Context, from Reader, thread structure.ThreadID) (Reach, error) {
	if v, ok := from.(View); ok {
		return AtOnce(ctx, v, func(s Snapshot) (Reach, error) { return ownReach(ctx, s, thread) })
	}
	return ownReach(ctx, from, thread)
}

// ownReach is OwnReach of a reader that has one state.
func ownReach(ctx context.Context, from Reader, thread structure.ThreadID) (Reach, error) {
	reach := make(Reach)
	for run, err := range runsWithLasts(ctx, from, thread) {
		var last structure.SpanRef
		if err == nil {
			last, err = from.Last(ctx, run.ID)
		}
		if err != nil {
			return nil, err
		}
		if !last.IsZero() {
			reach[run.ID] = &Extent{Run: run, Last: last.Seq}
		}
	}
	return reach, nil
}

// FollowContexts adds the histories of the contexts of a thread, or of those without a thread
// for the zero id.
func (r Reach) FollowContexts(ctx context.Context, from Reader, thread structure.ThreadID) error {
	for c, err := range from.Contexts(ctx, thread, structure.ContextID{}) {
		if err == nil {
			err = r.Follow(ctx, from, c.Tip)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Follow adds the history that ends at a span.
func (r Reach) Follow(ctx context.Context, from Reader, at structure.SpanRef) error {
	runs := Runs(ctx, from)
	for !at.IsZero() {
		if known := r[at.Run]; known != nil {
			known.Last = max(known.Last, at.Seq)
			return nil
		}
		run, err := runs(at.Run)
		if err != nil {
			return err
		}
		r[at.Run] = &Extent{Run: run, Last: at.Seq}
		at = run.Parent
	}
	return nil
}

// Has reports whether a span is included.
func (r Reach) Has(at structure.SpanRef) bool {
	e := r[at.Run]
	return e != nil && at.Seq > 0 && at.Seq <= e.Last
}

// Spans returns the number of spans.
func (r Reach) Spans() uint64 {
	n := uint64(0)
	for _, e := range r {
		n += e.Last
	}
	return n
}

// Extents returns the runs, each after its ancestors.
func (r Reach) Extents() []Extent {
	all := make([]Extent, 0, len(r))
	for _, e := range r {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b Extent) int {
		return cmp.Or(cmp.Compare(a.Run.Depth, b.Run.Depth), a.Run.ID.Compare(b.Run.ID))
	})
	return all
}
