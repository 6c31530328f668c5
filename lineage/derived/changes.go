package derived

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Changes are the subjects that commits changed. They tell what to read again, not the new state: later commits may
// have changed a subject again, or deleted it.
type Changes struct {
	Threads  map[structure.ThreadID]ThreadChange
	Contexts map[structure.ContextID]ContextChange
	Runs     map[structure.RunID]RunChange
	// Branches and Checkpoints were set or deleted.
	Branches, Checkpoints map[Name]bool
	// Erased is content that was erased, Stored is content that was stored, possibly several times. Content can be in both.
	Erased map[content.ID]bool
	Stored []content.ID
	// Values are the owners of values that were set or deleted.
	Values map[structure.Owner]bool
}

// ThreadChange is a change of a thread. It is zero if only fields of the thread changed.
type ThreadChange struct {
	// Deleted is set if the thread was deleted, together with its contexts, branches, checkpoints and values. These
	// do not appear as changes of their own. If the thread exists, it was created again.
	Deleted bool
	// Keeps is set if the thread keeps all its runs, possibly since this change.
	Keeps bool
}

// ContextChange is a change of a context.
type ContextChange struct {
	// Stated is set if the context was created, changed, or deleted with its summaries and values, or if its remnant
	// was stated. Moved is set if its tip moved. Summarized is set if a summary of it was created or deleted.
	Stated, Moved, Summarized bool
	// Deleted is set if the context was deleted. If it exists, it was created again.
	Deleted bool
}

// RunChange is an addition to a run.
type RunChange struct {
	// First and Last are the places of the first and last new span.
	First, Last uint64
	// Renewed is set if a new span is a later version of a message.
	Renewed bool
}

// Name is the name of a branch or checkpoint.
type Name struct {
	Thread structure.ThreadID
	Name   string
}

// NewChanges returns empty changes.
func NewChanges() *Changes {
	return &Changes{
		Threads: make(map[structure.ThreadID]ThreadChange), Contexts: make(map[structure.ContextID]ContextChange),
		Runs: make(map[structure.RunID]RunChange), Branches: make(map[Name]bool), Checkpoints: make(map[Name]bool),
		Erased: make(map[content.ID]bool), Values: make(map[structure.Owner]bool),
	}
}

// len returns the number of subjects.
func (c *Changes) len() int {
	return len(c.Threads) + len(c.Contexts) + len(c.Runs) + len(c.Branches) + len(c.Checkpoints) + len(c.Erased) + len(c.Stored) + len(c.Values)
}

// Thread adds a change of a thread.
func (c *Changes) Thread(id structure.ThreadID, more ThreadChange) {
	change := c.Threads[id]
	c.Threads[id] = ThreadChange{Deleted: change.Deleted || more.Deleted, Keeps: change.Keeps || more.Keeps}
}

// Context adds a change of a context.
func (c *Changes) Context(id structure.ContextID, more ContextChange) {
	change := c.Contexts[id]
	c.Contexts[id] = ContextChange{
		Stated: change.Stated || more.Stated, Moved: change.Moved || more.Moved, Summarized: change.Summarized || more.Summarized,
		Deleted: change.Deleted || more.Deleted,
	}
}

// add adds the subject of a record.
func (c *Changes) add(r structure.Record) {
	switch r := r.(type) {
	case *structure.Block:
		c.Stored = append(c.Stored, r.ID)
	case *structure.Thread:
		c.Thread(r.ID, ThreadChange{Keeps: r.Keeps})
	case *structure.Context:
		c.Context(r.ID, ContextChange{Stated: true})
	case *structure.Remnant:
		c.Context(r.ID, ContextChange{Stated: true})
	case *structure.Tip:
		c.Context(r.Context, ContextChange{Moved: true})
	case *structure.Span:
		c.span(r)
	case *structure.Branch:
		c.Branches[Name{r.Thread, r.Name}] = true
	case *structure.Checkpoint:
		c.Checkpoints[Name{r.Thread, r.Name}] = true
	case *structure.Summary:
		c.Context(r.Context, ContextChange{Summarized: true})
	case *structure.Value:
		c.Values[r.Owner] = true
	case *structure.Deletion:
		c.deletion(r)
	}
}

func (c *Changes) span(s *structure.Span) {
	home, known := c.Runs[s.Ref.Run]
	if !known {
		home.First = s.Ref.Seq
	}
	home.Last = s.Ref.Seq
	for i := range s.Usages {
		home.Renewed = home.Renewed || s.Usages[i].Lookup > 1
	}
	c.Runs[s.Ref.Run] = home
}

func (c *Changes) deletion(d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		c.Thread(d.Thread, ThreadChange{Deleted: true})
	case structure.KindContext:
		c.Context(d.Context, ContextChange{Stated: true, Deleted: true})
	case structure.KindBranch:
		c.Branches[Name{d.Thread, d.Name}] = true
	case structure.KindCheckpoint:
		c.Checkpoints[Name{d.Thread, d.Name}] = true
	case structure.KindSummary:
		c.Context(d.Context, ContextChange{Summarized: true})
	case structure.KindBlock:
		c.Erased[d.Content] = true
	}
}
