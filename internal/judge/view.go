package judge

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// View is the state just before a commit. A missing subject is nil or false, never an
// error. The view owns its results; the judge does not change them, and they must stay
// valid until the next commit is judged.
//
// [Keys] returns what a commit needs of it.
type View interface {
	Contents
	Histories
	Names
	Deletions

	Thread(structure.ThreadID) (*structure.Thread, error)
	// Context returns a context with its current tip.
	Context(structure.ContextID) (*backend.Context, error)
	// Remnant returns what is left of a deleted context.
	Remnant(structure.ContextID) (*structure.Remnant, error)
	// Unused reports whether there was certainly never a context with this id. It may
	// return false to avoid a lookup.
	Unused(structure.ContextID) bool
	// Value returns the commit that last set or deleted a value, or 0.
	Value(structure.ValueKey) (commit uint64, err error)
}

// Contents are the blocks and chunks of a state.
type Contents interface {
	// Block returns the size of a block, erased or not.
	Block(content.ID) (size int64, known bool, err error)
	Erased(content.ID) (bool, error)
	HasChunk(content.Key) (bool, error)
	// Chunks returns the bytes of existing chunks, in order.
	Chunks(context.Context, []content.Key) ([][]byte, error)
}

// Histories are the runs and spans of a state.
type Histories interface {
	Run(structure.RunID) (structure.RunInfo, bool, error)
	// End returns the end of a run, and false if there is no such run.
	End(structure.RunID) (End, bool, error)
	HasSpan(structure.SpanRef) (bool, error)
	// Digest returns the digest of the history that ends at an existing span.
	Digest(structure.SpanRef) (structure.Digest, error)
	HasSet(structure.SpanSetID) (bool, error)
	// HasLookup reports whether a usage in a home has a source id and a Lookup.
	HasLookup(Lookup) (bool, error)
	// Find is backend.SourceReader.Find from the beginning.
	Find(sourceID string, thread structure.ThreadID) iter.Seq2[backend.Found, error]
}

// End is the end of a run.
type End struct {
	Seq uint64
	// Digest is the digest of the history up to the end.
	Digest structure.Digest
	// Closed means that no span may follow, because the last ones were collected.
	Closed bool
}

// Names are the names of a state.
type Names interface {
	Branch(Name) (*structure.Branch, error)
	Checkpoint(Name) (*structure.Checkpoint, error)
	// BranchFrom and CheckpointFrom return the name with a source id in a thread, or "".
	BranchFrom(SourceID) (name string, err error)
	CheckpointFrom(SourceID) (name string, err error)
}

// Lookup is the key by which a usage is found.
type Lookup struct {
	Home     structure.Home
	SourceID string
	Number   uint64 // Lookup of the usage
}

// SourceID is a source id within a thread.
type SourceID struct {
	Thread structure.ThreadID
	ID     string
}

// Name is a name within a thread.
type Name struct {
	Thread structure.ThreadID
	Name   string
}

// Deletions are lists of everything that belongs to a subject. Only deletions need them.
type Deletions interface {
	// Members returns the contexts of a thread with their tips.
	Members(structure.ThreadID) ([]*backend.Context, error)
	Branches(structure.ThreadID) ([]*structure.Branch, error)
	Checkpoints(structure.ThreadID) ([]*structure.Checkpoint, error)
	// NamesOf returns the names of the branches that are a context of the thread.
	NamesOf(structure.ThreadID, structure.ContextID) ([]string, error)
	// NextChild returns the first child of a context, living or a remnant, whose id is greater
	// than after.
	NextChild(parent, after structure.ContextID) (child structure.ContextID, ok bool, err error)
	// Summaries returns the summaries of a context, oldest first.
	Summaries(structure.ContextID) ([]SummaryAt, error)
}

// SummaryAt is a stored summary, with its commit and the index of its record.
type SummaryAt struct {
	ID      structure.SummaryID
	Context structure.ContextID
	Commit  uint64
	Record  uint64
}
