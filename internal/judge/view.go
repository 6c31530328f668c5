package judge

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// View is the state that a commit is judged in: the one just before it. What is not there
// is nil or false, never an error. What a view returns belongs to it and is not changed; it
// has to stay as it is until the next commit is judged.
//
// [Keys] says which of it a commit needs.
type View interface {
	Contents
	Histories
	Names
	Deletions

	Thread(structure.ThreadID) (*structure.Thread, error)
	// Context returns a context with its current tip.
	Context(structure.ContextID) (*backend.Context, error)
	// Fresh reports that there was never a context of this id. It may be false where
	// that is not known without a lookup.
	Fresh(structure.ContextID) bool
	// Value returns the number of the commit that set or deleted a value last, 0 if none
	// did.
	Value(structure.ValueKey) (commit uint64, err error)
}

// Contents are the blocks and chunks of a state.
type Contents interface {
	// Block returns the size of a block, erased or not.
	Block(content.ID) (size int64, known bool, err error)
	Erased(content.ID) (bool, error)
	HasChunk(content.Key) (bool, error)
	// Chunks returns the bytes of chunks that are there, in their order.
	Chunks(context.Context, []content.Key) ([][]byte, error)
}

// Histories are the runs and spans of a state.
type Histories interface {
	Run(structure.RunID) (structure.RunInfo, bool, error)
	// End returns where a run ends. It is false if there is no such run.
	End(structure.RunID) (End, bool, error)
	HasSpan(structure.SpanRef) (bool, error)
	// Digest returns the digest of the history that ends at a span that is there.
	Digest(structure.SpanRef) (structure.Digest, error)
	HasSet(structure.SpanSetID) (bool, error)
	// HasLookup reports whether a usage in a home has a source id and a Lookup.
	HasLookup(Lookup) (bool, error)
	// Find is backend.SourceReader.Find from the beginning.
	Find(sourceID string, thread structure.ThreadID) iter.Seq2[backend.Found, error]
}

// End is where a run ends.
type End struct {
	Seq uint64
	// Digest is that of the history up to there.
	Digest structure.Digest
	// Closed says that nothing may follow: spans were collected from the end.
	Closed bool
}

// Names are the names of a state.
type Names interface {
	Branch(Name) (*structure.Branch, error)
	Checkpoint(Name) (*structure.Checkpoint, error)
	// BranchFrom and CheckpointFrom return the name of what has a source id in a thread,
	// or none.
	BranchFrom(Source) (name string, err error)
	CheckpointFrom(Source) (name string, err error)
}

// Lookup is what a usage is found by.
type Lookup struct {
	Home     structure.Home
	SourceID string
	Number   uint64 // its Lookup
}

// Source is a source id within a thread.
type Source struct {
	Thread structure.ThreadID
	ID     string
}

// Name is a name within a thread.
type Name struct {
	Thread structure.ThreadID
	Name   string
}

// Deletions are what only a commit that deletes something looks at: everything that
// belongs to a subject.
type Deletions interface {
	// Members returns the contexts of a thread with their tips.
	Members(structure.ThreadID) ([]*backend.Context, error)
	Branches(structure.ThreadID) ([]*structure.Branch, error)
	Checkpoints(structure.ThreadID) ([]*structure.Checkpoint, error)
	// NamesOf returns the names of the branches of a thread that a context of it is.
	NamesOf(structure.ThreadID, structure.ContextID) ([]string, error)
	// Summaries returns the summaries of a context, oldest first.
	Summaries(structure.ContextID) ([]SummaryAt, error)
}

// SummaryAt is a summary that is stored, by the commit that brought it and its place among
// the records there.
type SummaryAt struct {
	ID      structure.SummaryID
	Context structure.ContextID
	Commit  uint64
	Record  uint64
}
