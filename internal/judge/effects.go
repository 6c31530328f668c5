package judge

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Effects are the changes of a commit. Each table has the final state of a subject once.
// They refer to the records of the commit and to what the view returned.
type Effects struct {
	Threads     OrderedMap[structure.ThreadID, Change[*structure.Thread]]
	Branches    OrderedMap[Name, Change[*structure.Branch]]
	Checkpoints OrderedMap[Name, Change[*structure.Checkpoint]]
	// BranchSources and CheckpointSources have the names that have a source id now, or "".
	BranchSources     OrderedMap[SourceID, string]
	CheckpointSources OrderedMap[SourceID, string]

	Contexts OrderedMap[structure.ContextID, ContextChange]
	// Remnants are what is left of deleted contexts.
	Remnants OrderedMap[structure.ContextID, Change[*structure.Remnant]]
	// Tips has the tips of contexts that were moved or stated again.
	Tips OrderedMap[structure.ContextID, Tip]

	Runs OrderedMap[structure.RunID, structure.RunInfo] // new ones
	Ends OrderedMap[structure.RunID, End]               // of runs that are new or have new spans
	// Cuts are runs whose last spans were collected. They occur only in replay.
	Cuts  []structure.RunID
	Spans OrderedMap[structure.SpanRef, Span]
	// LastMessages has the latest times of usages in new spans, in Unix milliseconds, by
	// the home of their runs. Earlier spans of a home may have later times.
	LastMessages OrderedMap[structure.Home, int64]
	Sets         OrderedMap[structure.SpanSetID, *structure.SpanSet]
	// Lookups has the usages of new spans that can be found by source id.
	Lookups OrderedMap[Lookup, structure.SpanRef]

	Blocks OrderedMap[content.ID, Block]
	Chunks OrderedMap[content.Key, Chunk]
	// Erased has whether content is erased now. Revived has content that was erased before
	// and is stored again.
	Erased  OrderedMap[content.ID, bool]
	Revived []content.ID

	// Summaries and Reflog are in the order of their records. Those whose context the
	// commit deletes later are nil.
	Summaries     []Noted[*structure.Summary]
	Reflog        []Noted[*structure.Reflog]
	SummariesGone OrderedMap[SummaryAt, struct{}]
	// Values has the final record of each value that was set or deleted. ThreadsGone has
	// threads that were deleted, even if created again, or changed their incarnation:
	// values from before the commit are gone for them, and for contexts that are gone.
	Values      OrderedMap[structure.ValueKey, *structure.Value]
	ThreadsGone []structure.ThreadID

	Counts Counts
}

// Change is a subject before and after a commit; nil if it does not exist.
type Change[T any] struct{ Was, Now T }

// ContextChange is a context before a commit, and as last stated in it; nil if it does not
// exist. Its tip after that is in Tips.
type ContextChange struct {
	Was, Stated *backend.Context
	// Created reports whether the commit created a context with this id, even if it deleted
	// it again.
	Created bool
}

// Gone reports whether the context from before the commit was deleted, with its tip,
// summaries, reflog, and places in its thread and below its parent. There may be a new
// context with the same id.
func (c *ContextChange) Gone() bool { return c.Was != nil && (c.Created || c.Stated == nil) }

// Tip is the tip of a context, and the commit that set it.
type Tip struct {
	Span   structure.SpanRef
	Commit uint64
	At     int64 // Unix milliseconds
}

// Span is a new span.
type Span struct {
	*structure.Span
	Record int // index of the record
	Digest structure.Digest
}

// Block is a stored block; the later of two with the same id.
type Block struct {
	Record int
	Size   int64
}

// Chunk is a stored chunk.
type Chunk struct {
	Record int
	Bytes  []byte
}

// Noted is a record that was added to a context.
type Noted[R any] struct {
	Record int
	Is     R
}

// Counts are the changes of a store's counters.
type Counts struct {
	Threads, Contexts, Branches, Checkpoints int64
	Runs, Spans, Usages                      int64
	Blocks, Chunks                           int64
	UniqueBytes, LogicalBytes, Erased        int64
}

func (e *Effects) reset() {
	e.Threads.reset()
	e.Branches.reset()
	e.Checkpoints.reset()
	e.BranchSources.reset()
	e.CheckpointSources.reset()
	e.Contexts.reset()
	e.Remnants.reset()
	e.Tips.reset()
	e.LastMessages.reset()
	e.Runs.reset()
	e.Ends.reset()
	e.Cuts = emptied(e.Cuts)
	e.Spans.reset()
	e.Sets.reset()
	e.Lookups.reset()
	e.Blocks.reset()
	e.Chunks.reset()
	e.Erased.reset()
	e.Revived = emptied(e.Revived)
	e.Summaries, e.Reflog = emptied(e.Summaries), emptied(e.Reflog)
	e.SummariesGone.reset()
	e.Values.reset()
	e.ThreadsGone = emptied(e.ThreadsGone)
	e.Counts = Counts{}
}
