// Package judge decides whether a commit is allowed in a state, and what it changes. It is
// the same for all engines and for new and replayed commits: an engine implements a [View]
// of its state, and stores the [Effects] in its own way. The judge takes no locks.
//
// The rules are those of backend.Engine.Apply. Records are judged in order, each in the
// state after those before it.
package judge

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Judge judges commits one by one, and reuses its memory.
type Judge struct{ judging }

// Judge returns the effects of a commit, or why it is refused. The effects are valid until
// Release.
func (j *Judge) Judge(ctx context.Context, c Case) (*Effects, error) {
	j.Case, j.millis = c, c.Commit.Time.UnixMilli()
	for i, r := range c.Commit.Records {
		if i%1024 == 1023 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := j.record(i, r); err != nil {
			return nil, err
		}
	}
	if !j.Replay {
		if err := j.requireUsed(); err != nil {
			return nil, err
		}
	}
	return &j.effects, nil
}

// Release releases the commit and its effects. It must be called before the next commit.
func (j *Judge) Release() { j.reset() }

func (j *Judge) record(i int, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		return j.block(i, r)
	case *structure.Chunk:
		return j.chunk(i, r)
	case *structure.Thread:
		return j.thread(r)
	case *structure.Context:
		return j.context(r)
	case *structure.Tip:
		return j.tip(r)
	case *structure.Run:
		return j.run(r)
	case *structure.Span:
		return j.extend(i, r)
	case *structure.SpanSet:
		return j.spanSet(r)
	case *structure.Branch:
		return j.branch(r)
	case *structure.Checkpoint:
		return j.checkpoint(r)
	case *structure.Summary:
		return j.summary(i, r)
	case *structure.Reflog:
		return j.reflogEntry(i, r)
	case *structure.Deletion:
		return j.deletion(r)
	case *structure.Cut:
		return j.cut(r)
	case *structure.Value:
		return j.value(r)
	case *structure.Remnant:
		return j.remnant(r)
	}
	return fmt.Errorf("record %d: %w", i, backend.ErrInvalid)
}

func (j *Judge) deletion(d *structure.Deletion) error {
	switch d.Subject {
	case structure.KindThread:
		return j.deleteThread(d.Thread)
	case structure.KindContext:
		return j.deleteContext(d.Context)
	case structure.KindBranch:
		return j.branchNames().delete(d)
	case structure.KindCheckpoint:
		return j.checkpointNames().delete(d)
	case structure.KindSummary:
		return j.deleteSummary(d)
	case structure.KindBlock:
		return j.erase(d.Content)
	}
	return refusal("deletion", d.Subject, backend.ErrInvalid, "nothing to delete")
}
