package records

import (
	"context"

	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

const (
	// exactUpTo is the number of messages up to which all are read to count copies. Where reads are round trips, it is
	// also limited by the number of runs, each of which takes some.
	exactUpTo     = 20_000
	exactUpToRuns = 100
	// contextsAtOnce is the number of contexts whose histories are measured at once.
	contextsAtOnce = 1000
)

// OfStats returns the record of a store's statistics. If exact is set, every message is read, however many there are.
// progress, when not nil, is called with the number of contexts that were counted and their total.
func OfStats(ctx context.Context, store *lineage.Store, exact bool, progress func(done, total int64)) (*Stats, error) {
	return backend.AtOnce(ctx, store.View(), func(s backend.Snapshot) (*Stats, error) {
		stats, err := s.Stats(ctx)
		if err != nil {
			return nil, err
		}
		_, trips := s.(backend.ThreadsAhead)
		r := &Stats{Stats: stats, CopiedExact: exact || stats.Usages <= exactUpTo && (!trips || stats.Runs <= exactUpToRuns)}
		return r, r.countCopies(ctx, store, s, progress)
	})
}

// countCopies counts what copies of all histories would hold.
func (r *Stats) countCopies(ctx context.Context, store *lineage.Store, s backend.Snapshot, progress func(done, total int64)) error {
	var tips []lineage.SpanRef
	done := int64(0)
	for contexts, err := range pages.Of(s.Contexts(ctx, lineage.ThreadID{}, lineage.ContextID{}), contextsAtOnce) {
		if err != nil {
			return err
		}
		lengths, err := lengthsOf(ctx, s, contexts)
		if err != nil {
			return err
		}
		for i := range contexts {
			r.CopiedMessages += lengths[i]
			if lengths[i] > 0 && r.CopiedExact {
				tips = append(tips, contexts[i].Tip)
			}
			if done++; progress != nil {
				progress(done, int64(r.Contexts))
			}
		}
	}
	if !r.CopiedExact && r.Spans > 0 {
		r.CopiedBytes = uint64(float64(r.CopiedMessages) / float64(r.Spans) * float64(r.LogicalBytes))
	}
	sizes, err := historySizes(ctx, store, tips)
	if err != nil {
		return err
	}
	for _, tip := range tips {
		r.CopiedBytes += sizes[tip.Run][tip.Seq-1]
	}
	return nil
}

// lengthsOf returns the lengths of the histories of some contexts.
func lengthsOf(ctx context.Context, s backend.Snapshot, contexts []backend.Context) ([]uint64, error) {
	var ids []structure.RunID
	for i := range contexts {
		if tip := contexts[i].Tip; !tip.IsZero() {
			ids = append(ids, tip.Run)
		}
	}
	runs, err := backend.RunsByID(ctx, s, ids)
	if err != nil {
		return nil, err
	}
	lengths := make([]uint64, len(contexts))
	var before lineage.SpanRef
	for i := range contexts {
		tip := contexts[i].Tip
		if !before.IsZero() && tip.Run == before.Run { // often: forks of one context share a run
			lengths[i] = lengths[i-1] + tip.Seq - before.Seq
		} else if lengths[i], err = structure.Position(tip, func(id structure.RunID) (structure.RunInfo, error) { return runs[id], nil }); err != nil {
			return nil, err
		}
		before = tip
	}
	return lengths, nil
}

// historySizes returns, for each span in the histories of some tips, the bytes of the history up to it. It reads
// every span once.
func historySizes(ctx context.Context, store *lineage.Store, tips []lineage.SpanRef) (map[structure.RunID][]uint64, error) {
	reach := make(backend.Reach)
	for _, tip := range tips {
		if err := reach.Follow(ctx, store.View(), tip); err != nil {
			return nil, err
		}
	}
	sizes := make(map[structure.RunID][]uint64)
	for _, e := range reach.Extents() {
		sum := uint64(0)
		if parent := e.Run.Parent; !parent.IsZero() {
			sum = sizes[parent.Run][parent.Seq-1]
		}
		sizes[e.Run.ID] = make([]uint64, e.Last)
		for entry, err := range store.History(ctx, lineage.SpanRef{Run: e.Run.ID, Seq: e.Last}, lineage.Window{Last: e.Last}) {
			if err != nil {
				return nil, err
			}
			sum += uint64(entry.Size)
			sizes[e.Run.ID][entry.Span.Seq-1] = sum
		}
	}
	return sizes, nil
}
