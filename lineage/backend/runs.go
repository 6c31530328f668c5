package backend

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// maxAncestors is the maximum number of runs per call.
const maxAncestors = 256

// Runs returns a lookup of runs for functions over ancestry, with a cache. It is not safe for concurrent use. Each
// lookup fetches twice as many ancestors as the one before. So the first costs one run, and a long ancestry takes few
// calls.
func Runs(ctx context.Context, r Reader) structure.RunLookup {
	known := make(map[structure.RunID]structure.RunInfo)
	limit := 1
	return func(id structure.RunID) (structure.RunInfo, error) {
		if run, ok := known[id]; ok {
			return run, nil
		}
		all, err := r.Ancestry(ctx, id, limit)
		if err != nil {
			return structure.RunInfo{}, err
		}
		limit = min(2*limit, maxAncestors)
		for _, run := range all {
			known[run.ID] = run
		}
		return known[id], nil
	}
}

// RunsByID returns runs of a state. Where reads are round trips, it takes one.
func RunsByID(ctx context.Context, s Snapshot, ids []structure.RunID) (map[structure.RunID]structure.RunInfo, error) {
	if ahead, ok := s.(ThreadsAhead); ok {
		if err := ahead.RunsAhead(ctx, ids); err != nil {
			return nil, err
		}
	}
	runs := make(map[structure.RunID]structure.RunInfo, len(ids))
	for _, id := range ids {
		if _, known := runs[id]; known {
			continue
		}
		run, err := s.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		runs[id] = run
	}
	return runs, nil
}

// Before returns the span that precedes another one, zero for none.
func Before(ctx context.Context, r Reader, at structure.SpanRef) (structure.SpanRef, error) {
	if at.Seq > 1 {
		return structure.SpanRef{Run: at.Run, Seq: at.Seq - 1}, nil
	}
	run, err := r.Run(ctx, at.Run)
	return run.Parent, err
}

// RunLister is implemented by snapshots whose reads are round trips.
type RunLister interface {
	// AllRuns yields every run.
	AllRuns(context.Context) iter.Seq2[structure.RunInfo, error]
}

// AllRuns yields every run, in any order.
func AllRuns(ctx context.Context, r Reader) iter.Seq2[structure.RunInfo, error] {
	if l, ok := r.(RunLister); ok {
		return l.AllRuns(ctx)
	}
	return func(yield func(structure.RunInfo, error) bool) {
		todo := []structure.RunID{{}}
		for len(todo) > 0 {
			next := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for run, err := range r.Forks(ctx, next) {
				if !yield(run, err) || err != nil {
					return
				}
				todo = append(todo, run.ID)
			}
		}
	}
}

// StepReader is implemented by snapshots whose reads are round trips.
type StepReader interface {
	// Steps yields the steps of spans, in their order and with bodies. It takes few round trips, whatever their number.
	Steps(context.Context, []structure.SpanRef) iter.Seq2[*Step, error]
}

// Distant is implemented by engines whose reads are round trips. Their readers ask for much at once, also for some that they may
// not need.
type Distant interface{ Distant() bool }

// IsDistant reports whether the reads of an engine are round trips.
func IsDistant(e View) bool {
	d, ok := e.(Distant)
	return ok && d.Distant()
}

// Steps returns the steps of spans, in their order and with bodies.
func Steps(ctx context.Context, s Snapshot, refs []structure.SpanRef) (steps []*Step, err error) {
	all := func(yield func(*Step, error) bool) {
		for _, at := range refs {
			for step, err := range s.Path(ctx, at, structure.Window{Last: 1}, PathOptions{Bodies: true}) {
				if !yield(step, err) || err != nil {
					return
				}
			}
		}
	}
	if r, ok := s.(StepReader); ok {
		all = r.Steps(ctx, refs)
	}
	for step, err := range all {
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}
