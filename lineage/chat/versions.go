package chat

import (
	"context"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Looking up the latest version of a message costs several times as much as reading its span, and few messages have a
// second version. So before many messages are read, those with later versions are searched for.

const (
	// fewMessages is the largest number of messages that are looked up one by one.
	fewMessages = 64
	// lookupCost is the number of spans that can be read without their contents in the time of one lookup.
	lookupCost = 4
)

// findLaterVersions finds the messages of the chat that have later versions, if that costs less than n lookups. It does nothing in
// a transaction, because what the transaction adds is not in the runs that it reads.
func (r *ThreadReader) findLaterVersions(ctx context.Context, n uint64) error {
	if _, staged := r.from.(*write.Stage); staged || r.laterVersions != nil || r.owned != nil || n <= fewMessages {
		return nil
	}
	var runs []backend.Extent
	spans := uint64(0)
	for run, err := range r.from.RunsOf(ctx, r.thread.ID, structure.RunID{}) {
		var last structure.SpanRef
		if err == nil {
			last, err = r.from.Last(ctx, run.ID)
		}
		if err != nil {
			return err
		}
		spans += last.Seq
		if runs = append(runs, backend.Extent{Run: run, Last: last.Seq}); spans > lookupCost*n || uint64(len(runs)) > n/lookupCost {
			return nil
		}
	}
	later := make(map[string]bool)
	for _, e := range runs {
		if e.Last == 0 {
			continue
		}
		end := structure.SpanRef{Run: e.Run.ID, Seq: e.Last}
		for step, err := range r.from.Path(ctx, end, structure.Window{From: e.Run.Position(1)}, backend.PathOptions{Passing: true}) {
			if err != nil {
				return err
			}
			if id, version := sourceOf(step.Span.Usages); version > 1 {
				later[id] = true
			}
		}
	}
	r.laterVersions = later
	return nil
}
