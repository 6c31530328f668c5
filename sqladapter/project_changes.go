package sqladapter

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// changes are the subjects of a range of commits.
type changes struct {
	threads  map[structure.ThreadID]bool // true when one was deleted
	full     map[structure.ThreadID]bool
	contexts map[structure.ContextID]bool // true when one was deleted
	runs     map[structure.RunID]bool // true when it has new versions of messages
	erased   map[content.ID]bool
	stored   map[content.ID]bool
	values   map[structure.Owner]bool
	stated   map[structure.ContextID]bool // or deleted
	// summarized are contexts of which a summary was made or deleted.
	summarized map[structure.ContextID]bool
}

func newChanges() *changes {
	return &changes{
		threads: make(map[structure.ThreadID]bool), full: make(map[structure.ThreadID]bool),
		contexts: make(map[structure.ContextID]bool), runs: make(map[structure.RunID]bool), erased: make(map[content.ID]bool), stored: make(map[content.ID]bool),
		values: make(map[structure.Owner]bool), stated: make(map[structure.ContextID]bool),
		summarized: make(map[structure.ContextID]bool),
	}
}

func (c *changes) touchThread(id structure.ThreadID) {
	if _, ok := c.threads[id]; !ok {
		c.threads[id] = false
	}
}

func (c *changes) touchContext(id structure.ContextID) {
	if _, ok := c.contexts[id]; !ok {
		c.contexts[id] = false
	}
}

// add adds the subject of a record.
func (c *changes) add(r structure.Record) {
	switch r := r.(type) {
	case *structure.Block:
		c.stored[r.ID] = true
	case *structure.Thread:
		c.touchThread(r.ID)
		if r.Keeps {
			c.full[r.ID] = true // it may have begun to, and has messages that no context leads to
		}
	case *structure.Context:
		c.touchContext(r.ID)
		c.stated[r.ID] = true
	case *structure.Remnant:
		c.touchContext(r.ID)
	case *structure.Tip:
		c.touchContext(r.Context)
	case *structure.Span:
		renewed := c.runs[r.Ref.Run]
		for i := range r.Usages {
			renewed = renewed || r.Usages[i].Lookup > 1
		}
		c.runs[r.Ref.Run] = renewed
	case *structure.Branch:
		c.touchThread(r.Thread)
		c.touchContext(r.Context)
	case *structure.Checkpoint:
		c.touchThread(r.Thread)
		c.full[r.Thread] = true // the checkpoint may have moved
	case *structure.Summary:
		c.touchContext(r.Context)
		c.summarized[r.Context] = true
	case *structure.Value:
		c.values[r.Owner] = true
	case *structure.Deletion:
		c.delete(r)
	}
}

func (c *changes) delete(d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		c.threads[d.Thread] = true
	case structure.KindContext:
		c.contexts[d.Context] = true
		c.stated[d.Context] = true
	case structure.KindBranch:
		c.touchThread(d.Thread)
	case structure.KindCheckpoint:
		c.touchThread(d.Thread)
		c.full[d.Thread] = true
	case structure.KindSummary:
		c.touchContext(d.Context)
		c.summarized[d.Context] = true
	case structure.KindBlock:
		c.erased[d.Content] = true
	}
}
