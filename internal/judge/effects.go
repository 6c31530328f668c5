package judge

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Effects are what a commit changes. Each subject is in a table once, as the commit leaves
// it. They refer to the records of the commit and to what the view returned.
type Effects struct {
	Threads     Table[structure.ThreadID, Change[*structure.Thread]]
	Branches    Table[Name, Change[*structure.Branch]]
	Checkpoints Table[Name, Change[*structure.Checkpoint]]
	// BranchSources and CheckpointSources have the names of what has a source id now, or
	// none.
	BranchSources     Table[Source, string]
	CheckpointSources Table[Source, string]

	Contexts Table[structure.ContextID, ContextChange]
	// Tips are where contexts stand now that were moved, or stated again.
	Tips Table[structure.ContextID, Tip]

	Runs Table[structure.RunID, structure.RunInfo] // new ones
	Ends Table[structure.RunID, End]               // of runs that are new or have new spans
	// Cuts are runs that lost their end to a collection. They come from replay only.
	Cuts  []structure.RunID
	Spans Table[structure.SpanRef, Span]
	// LastMessages are the greatest times of the usages in new spans, in Unix milliseconds,
	// by the home of their runs. Earlier spans of a home may have greater ones.
	LastMessages Table[structure.Home, int64]
	Sets         Table[structure.SpanSetID, *structure.SpanSet]
	// Lookups are the usages of new spans that are found by source ids.
	Lookups Table[Lookup, structure.SpanRef]

	Blocks Table[content.ID, Block]
	Chunks Table[content.Key, Chunk]
	// Erased says of content whether it is erased now. Revived is content that was erased
	// before and is stored again.
	Erased  Table[content.ID, bool]
	Revived []content.ID

	// Summaries and Reflog are in the order of their records. Those of which the commit
	// deletes the subject again are nil.
	Summaries     []Noted[*structure.Summary]
	Reflog        []Noted[*structure.Reflog]
	SummariesGone Table[SummaryAt, struct{}]
	// Values are values that were set or deleted, each as it was last. ThreadsGone are
	// threads that were deleted, maybe made again, or got another incarnation: the values
	// from before the commit that belong to them are gone. So are those of contexts that
	// are gone.
	Values      Table[structure.ValueKey, *structure.Value]
	ThreadsGone []structure.ThreadID

	Counts Counts
}

// Change is a subject before a commit and after it: nil when it is not there.
type Change[T any] struct{ Was, Now T }

// ContextChange is a context before a commit, and as the commit last stated it: nil when it
// is not there. Where it stands after that is in Tips.
type ContextChange struct {
	Was, Stated *backend.Context
	// Made says that the commit made a context of this id, though maybe for a time only.
	Made bool
}

// Gone reports that the context that was there before the commit is not there any more. Its
// tip, its summaries and its reflog, its places in its thread and below its parent are gone
// with it. There may be a new context of the same id.
func (c *ContextChange) Gone() bool { return c.Was != nil && (c.Made || c.Stated == nil) }

// Tip is where a context stands, and since which commit.
type Tip struct {
	Span   structure.SpanRef
	Commit uint64
	At     int64 // Unix milliseconds
}

// Span is a new span.
type Span struct {
	*structure.Span
	Record int // its place among the records
	Digest structure.Digest
}

// Block is a block that is stored. Of two of one id it is the later.
type Block struct {
	Record int
	Size   int64
}

// Chunk is a chunk that is stored.
type Chunk struct {
	Record int
	Bytes  []byte
}

// Noted is a record that was added to a context.
type Noted[R any] struct {
	Record int
	Is     R
}

// Counts are how the counters of a store change.
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
