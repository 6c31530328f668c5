package read

import (
	"context"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// spansAhead is the number of spans in the first prefetch of a path. The number doubles with each prefetch, up to
// mostSpansAhead.
const (
	spansAhead     = 256
	mostSpansAhead = 1024
)

// prefetchBlocks prefetches the entries of blocks, and with bodies also the commits that contain
// them.
func (v *View) prefetchBlocks(ctx context.Context, ids []content.ID, bodies bool) error {
	if v.Ahead == nil || len(ids) == 0 {
		return nil
	}
	ks := make([][]byte, 0, len(ids))
	for _, id := range ids {
		ks = append(ks, keys.Block(id))
	}
	need, erased := Need{Keys: ks}, v.anyErased()
	for _, id := range ids {
		if erased {
			need.Keys = append(need.Keys, keys.Of(keys.TableErased, id[:]))
		}
	}
	if err := v.Ahead.Prefetch(ctx, need); err != nil || !bodies {
		return err
	}
	return v.prefetchPlaces(ctx, ks)
}

// prefetchChunks prefetches chunks.
func (v *View) prefetchChunks(ctx context.Context, all []content.Key) error {
	if v.Ahead == nil || len(all) == 0 {
		return nil
	}
	ks := make([][]byte, 0, len(all))
	for _, k := range all {
		ks = append(ks, keys.Chunk(k))
	}
	if err := v.Ahead.Prefetch(ctx, Need{Keys: ks}); err != nil {
		return err
	}
	return v.prefetchPlaces(ctx, ks)
}

// prefetchPlaces prefetches the commits that contain blocks and chunks.
func (v *View) prefetchPlaces(ctx context.Context, ks [][]byte) error {
	var need Need
	for _, k := range ks {
		value, ok, err := v.Index.Get(k)
		if err != nil {
			return err
		}
		if p, err := keys.ReadLocation(value); ok && err == nil {
			need.commit(p.Frame)
		}
	}
	return v.Ahead.Prefetch(ctx, need)
}

// PrefetchSpans prefetches the spans of a run from first to last.
func (v *View) PrefetchSpans(ctx context.Context, run structure.RunID, first, last uint64) error {
	if v.Ahead == nil || last < first {
		return nil
	}
	r := Range{keys.Span(structure.SpanRef{Run: run, Seq: first}), keys.PrefixEnd(keys.Span(structure.SpanRef{Run: run, Seq: last}))}
	if err := v.Ahead.Prefetch(ctx, Need{Ranges: []Range{r}}); err != nil {
		return err
	}
	var need Need
	for e, err := range v.Index.Scan(r.From, r.To) {
		if err != nil {
			return err
		}
		need.commitOf(e.Value)
	}
	return v.Ahead.Prefetch(ctx, need)
}

// prefetchRefs prefetches spans, and returns each as a segment of its run.
func (v *View) prefetchRefs(ctx context.Context, refs []structure.SpanRef) (segments []structure.Segment, err error) {
	var places, commits Need
	for _, r := range refs {
		places.Keys = append(places.Keys, keys.Span(r), keys.Of(keys.TableRun, r.Run[:]))
	}
	if err := v.Ahead.Prefetch(ctx, places); err != nil {
		return nil, err
	}
	for _, r := range refs {
		value, err := v.spanEntry(r)
		if err != nil {
			return nil, err
		}
		commits.commitOf(value)
		run, err := Run(v.Index, r.Run)
		if err != nil {
			return nil, err
		}
		segments = append(segments, structure.Segment{Run: run, First: r.Seq, Last: r.Seq})
	}
	return segments, v.Ahead.Prefetch(ctx, commits)
}

// commitOf adds the commit of a span, given its entry.
func (n *Need) commitOf(span []byte) {
	if p, err := keys.ReadSpanLocation(span); err == nil {
		n.commit(p.Frame)
	}
}

// commit adds a commit, unless it equals the last one.
func (n *Need) commit(p journal.Position) {
	if len(n.Commits) == 0 || n.Commits[len(n.Commits)-1] != p {
		n.Commits = append(n.Commits, p)
	}
}
