package records

import (
	"context"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// exactUpTo is the number of messages up to which all are read to count copies.
const exactUpTo = 20_000

// OfStats returns the record of a store's statistics. If exact is set, every message is read, however many there are.
// progress, when not nil, is called with the number of contexts that were counted and their total.
func OfStats(ctx context.Context, store *lineage.Store, exact bool, progress func(done, total int64)) (*Stats, error) {
	stats, err := store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	r := &Stats{Stats: stats, CopiedExact: exact || stats.Usages <= exactUpTo}
	return r, r.countCopies(ctx, store, progress)
}

// countCopies counts what copies of all histories would hold.
func (r *Stats) countCopies(ctx context.Context, store *lineage.Store, progress func(done, total int64)) error {
	var tips []lineage.SpanRef
	done := int64(0)
	var last lineage.SpanRef
	var length uint64 // of the history that ends with last
	for c, err := range store.View().Contexts(ctx, lineage.ThreadID{}, lineage.ContextID{}) {
		if err != nil {
			return err
		}
		if !last.IsZero() && c.Tip.Run == last.Run { // often: forks of one context share a run
			length += c.Tip.Seq - last.Seq
		} else if length, err = store.Position(ctx, c.Tip); err != nil {
			return err
		}
		last = c.Tip
		r.CopiedMessages += length
		if length > 0 && r.CopiedExact {
			tips = append(tips, c.Tip)
		}
		if done++; progress != nil {
			progress(done, int64(r.Contexts))
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
