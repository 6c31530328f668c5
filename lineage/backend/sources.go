package backend

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// MaxSourceID is the largest size in bytes of a source id, as of an id in the documented tables of chats. A commit with a
// longer one of a branch, checkpoint or usage is ErrInvalid. Threads with longer ones are not created any more, but
// stores and bundles of earlier versions may have some.
const MaxSourceID = 4 << 10

// CheckSourceID refuses a source id that is too long.
func CheckSourceID(id string) error {
	if len(id) <= MaxSourceID {
		return nil
	}
	return &SubjectError{Subject: "source id", ID: fmt.Sprintf("%.80q", id), Err: ErrInvalid, Detail: fmt.Sprintf("it has more than %d bytes", MaxSourceID)}
}

// SourceReader finds records by the ids that callers chose.
type SourceReader interface {
	// BranchesBySource yields the branches with a source id, by thread: at most one in a
	// thread. The zero id means all threads.
	BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error]
	// CheckpointsBySource is BranchesBySource for checkpoints.
	CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error]
	// Find yields the spans with a source id in a thread, greatest Lookup first; for the
	// zero id those of all threads, thread by thread. A span is found while the home of its
	// run exists. If after is not zero, it continues after that span.
	Find(ctx context.Context, sourceID string, thread structure.ThreadID, after Found) iter.Seq2[Found, error]
	// RunsOf yields the runs that belong to a thread and sort after a given one, in the
	// order of their ids.
	RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error]
}

// Found is a span with a usage that has a source id.
type Found struct {
	Home   structure.Home
	Lookup uint64
	Span   structure.SpanRef
}

// FindFirst returns the first result of Find: in a thread the latest version. It is
// ErrNotFound if there is none.
func FindFirst(ctx context.Context, r SourceReader, sourceID string, thread structure.ThreadID) (Found, error) {
	for found, err := range r.Find(ctx, sourceID, thread, Found{}) {
		return found, err
	}
	return Found{}, &SubjectError{Subject: "source id", ID: fmt.Sprintf("%.80q", sourceID), Err: ErrNotFound}
}

// ExpectSource is what Find must yield for a source id in a thread, or in all threads for
// the zero id: exactly these spans, in any order.
type ExpectSource struct {
	SourceID string
	Thread   structure.ThreadID
	Spans    []structure.SpanRef
}

// ExpectBranch is the state that a branch must have: nil if the name must be unused.
type ExpectBranch struct {
	Thread structure.ThreadID
	Name   string
	Was    *structure.Branch
}

// ExpectCheckpoint is the state that a checkpoint must have: nil if the name must be
// unused.
type ExpectCheckpoint struct {
	Thread structure.ThreadID
	Name   string
	Was    *structure.Checkpoint
}
