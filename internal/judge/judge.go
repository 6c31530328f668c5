// Package judge decides whether a commit is allowed in a state, and what it changes. It is
// the same for every engine, and the same for a commit that is new and for one that is
// replayed: an engine answers a [View] of its state, and makes of the [Effects] whatever it
// keeps. The judge knows nothing of how that is kept, and takes no locks.
//
// The rules are those of backend.Engine.Apply. The records of a commit are judged in order,
// each in the state that those before it leave.
package judge

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Case is a commit to be judged, with its number and time.
type Case struct {
	Commit *structure.Commit
	View   View
	// Replay says that the commit was allowed before: nothing is refused, and only what
	// the effects need is looked up. What a collection has taken may be missing.
	Replay bool
	// WholeTrees asks that of a body that was cut everything is there. Otherwise the root
	// of its tree is enough: it was stored after what is below it.
	WholeTrees bool
}

// Judge judges commits, one after the other, in memory that it uses again.
type Judge struct {
	Case
	millis  int64
	effects Effects

	// What the commit said so far, by what it belongs to.
	members     groups[structure.ThreadID, structure.ContextID]
	branches    groups[structure.ThreadID, Name]
	checkpoints groups[structure.ThreadID, Name]
	named       groups[membership, string] // names of branches that were given to a context
	summaries   groups[structure.ContextID, int]
	reflog      groups[structure.ContextID, int]
	values      groups[structure.Owner, structure.ValueKey]
}

// Judge returns what a commit changes, or why it is refused. The effects hold until
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
	return &j.effects, nil
}

// Release lets go of the commit and its effects. It goes before the next commit.
func (j *Judge) Release() {
	j.Case = Case{}
	j.effects.reset()
	j.members.reset()
	j.branches.reset()
	j.checkpoints.reset()
	j.named.reset()
	j.summaries.reset()
	j.reflog.reset()
	j.values.reset()
}

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
		return j.span(i, r)
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

func refusal(subject string, id fmt.Stringer, why error, detail string) error {
	return &backend.SubjectError{Subject: subject, ID: id.String(), Err: why, Detail: detail}
}

// required turns the answer to a question into a refusal if the subject is not there. Ids
// are not made interfaces before that, which would cost memory.
func required[ID fmt.Stringer](there bool, err error, subject string, id ID) error {
	if err == nil && !there {
		err = refusal(subject, id, backend.ErrNotFound, "")
	}
	return err
}
