package backend

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// MaxSourceID is the largest size of a source id of a branch, checkpoint or usage, in
// bytes. A commit with a longer one is ErrInvalid.
const MaxSourceID = 4 << 10

// SourceReader finds things by the ids that their callers chose.
type SourceReader interface {
	// BranchesBySource yields the branches with a source id, by thread. Of one thread
	// that is one at most; the zero id stands for all threads.
	BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error]
	// CheckpointsBySource is BranchesBySource for checkpoints.
	CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error]
	// Find yields the spans that are found by a source id in a thread, the greatest Lookup
	// first; for the zero id those of all threads, one thread after the other. A span is
	// found while the home of its run exists. It goes on behind one that was found before,
	// if that is not zero.
	Find(ctx context.Context, sourceID string, thread structure.ThreadID, after Found) iter.Seq2[Found, error]
	// RunsOf yields the runs that belong to a thread, in the order of their ids, those
	// behind a given one.
	RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error]
}

// Found is a span that a usage with a source id is in.
type Found struct {
	Home   structure.Home
	Lookup uint64
	Span   structure.SpanRef
}

// FindFirst returns what Find yields first: in a thread the latest version. It is
// ErrNotFound if there is none.
func FindFirst(ctx context.Context, r SourceReader, sourceID string, thread structure.ThreadID) (Found, error) {
	for found, err := range r.Find(ctx, sourceID, thread, Found{}) {
		return found, err
	}
	return Found{}, &SubjectError{Subject: "source id", ID: fmt.Sprintf("%.80q", sourceID), Err: ErrNotFound}
}

// ExpectSource is what Find must yield for a source id in a thread, or in all threads for
// the zero id: these spans, in any order, and no others.
type ExpectSource struct {
	SourceID string
	Thread   structure.ThreadID
	Spans    []structure.SpanRef
}

// ExpectBranch is the state that a branch must have: nil when no branch may have that name.
type ExpectBranch struct {
	Thread structure.ThreadID
	Name   string
	Was    *structure.Branch
}

// ExpectCheckpoint is the state that a checkpoint must have: nil when no checkpoint may
// have that name.
type ExpectCheckpoint struct {
	Thread structure.ThreadID
	Name   string
	Was    *structure.Checkpoint
}
