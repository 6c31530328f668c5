package backend

import (
	"context"
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
