package bundle

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// theirsSuffix is appended to a name that is taken.
const theirsSuffix = "-theirs"

// longName is the length at which names are cut before the suffix, because the length of names is limited.
const longName = 2 << 10

// names adds branches and checkpoints of a thread. It updates the thread if the bundle's was changed later.
func (im *importer) names(c *structure.Commit) error {
	theirs := c.Records[len(c.Records)-1].(*structure.Thread)
	ours, err := im.engine.Thread(im.ctx, theirs.ID)
	if err != nil {
		return err
	}
	n := naming{Batch: im.batch(), im: im, thread: theirs.ID, contexts: make(map[structure.ContextID]bool), checkpoints: make(map[structure.CheckpointID]bool), taken: make(map[string]bool), tried: make(map[string]int)}
	defer im.writer.Release(n.Batch)
	if err := n.load(); err != nil {
		return err
	}
	for _, r := range c.Records[:len(c.Records)-1] {
		switch r := r.(type) {
		case *structure.Branch:
			err = n.branch(r)
		case *structure.Checkpoint:
			err = n.checkpoint(r)
		}
		if err != nil {
			return err
		}
	}
	merged, err := im.thread(ours, theirs)
	if err != nil {
		return err
	}
	if !structure.Equal(merged, ours) {
		n.Adopt(merged)
		n.ExpectThread(ours.ID, ours)
	}
	_, err = im.commit(n.Batch)
	return err
}

// thread merges a thread in the store with that of the bundle.
func (im *importer) thread(ours, theirs *structure.Thread) (*structure.Thread, error) {
	active := theirs.Active
	if _, conflict := im.contexts[active]; conflict {
		active = structure.ContextID{}
	}
	if !active.IsZero() {
		c, err := im.engine.Context(im.ctx, active)
		if err != nil {
			return nil, err
		}
		if c.Thread != theirs.ID {
			return nil, im.in.corrupt("context %v is active in thread %v and belongs to another", active, theirs.ID)
		}
	}
	merged := *ours
	if later(theirs.UpdatedAt, ours.UpdatedAt) {
		merged = *theirs
		merged.SourceID, merged.Incarnation, merged.CreatedAt, merged.Active, merged.Keeps = ours.SourceID, ours.Incarnation, ours.CreatedAt, ours.Active, ours.Keeps
		if !active.IsZero() {
			merged.Active = active
		}
	}
	if merged.Active.IsZero() {
		merged.Active = active
	}
	merged.Named = max(ours.Named, theirs.Named)
	return &merged, nil
}

// naming is a commit of a thread's names being prepared.
type naming struct {
	*write.Batch
	im          *importer
	thread      structure.ThreadID
	contexts    map[structure.ContextID]bool // contexts with a branch
	checkpoints map[structure.CheckpointID]bool
	taken       map[string]bool // names and source ids that the commit adds
	tried       map[string]int  // for a wanted name, the number of similar names that are taken
}

func (n *naming) load() error {
	for b, err := range n.im.engine.Branches(n.im.ctx, n.thread, "", "") {
		if err != nil {
			return err
		}
		n.contexts[b.Context] = true
	}
	for c, err := range n.im.engine.Checkpoints(n.im.ctx, n.thread, "") {
		if err != nil {
			return err
		}
		n.checkpoints[c.ID] = true
	}
	return nil
}

// branch adds a branch, unless its context has one in the store.
func (n *naming) branch(b *structure.Branch) error {
	b.Context = n.im.localContext(b.Context)
	if n.contexts[b.Context] {
		return nil
	}
	n.contexts[b.Context] = true
	name, err := n.free("branch", b.Name, func(name string) error {
		_, err := n.im.engine.Branch(n.im.ctx, n.thread, name)
		return err
	})
	b.Name = name
	if err == nil && b.SourceID != "" {
		b.SourceID, err = freeSource(n, "branch", b.SourceID, n.im.engine.BranchesBySource)
	}
	n.Adopt(b)
	return err
}

// checkpoint adds a checkpoint, unless the store has it or a checkpoint of the same name at the same span.
func (n *naming) checkpoint(c *structure.Checkpoint) error {
	c.Span = n.im.local(c.Span)
	if n.checkpoints[c.ID] {
		return nil
	}
	n.checkpoints[c.ID] = true
	if ours, err := n.im.engine.Checkpoint(n.im.ctx, n.thread, c.Name); err == nil && ours.Span == c.Span {
		return nil
	}
	name, err := n.free("checkpoint", c.Name, func(name string) error {
		_, err := n.im.engine.Checkpoint(n.im.ctx, n.thread, name)
		return err
	})
	c.Name = name
	if err == nil && c.SourceID != "" {
		c.SourceID, err = freeSource(n, "checkpoint", c.SourceID, n.im.engine.CheckpointsBySource)
	}
	n.Adopt(c)
	return err
}

// freeSource returns the source id, or an empty one if it is taken in the thread.
func freeSource[R any](n *naming, subject, sourceID string, find func(context.Context, string, structure.ThreadID) iter.Seq2[R, error]) (string, error) {
	k := "source of " + subject + " " + sourceID
	if n.taken[k] {
		return "", nil
	}
	n.taken[k] = true
	for _, err := range find(n.im.ctx, sourceID, n.thread) {
		return "", err
	}
	return sourceID, nil
}

// free returns the wanted name, or a similar one if it is taken.
func (n *naming) free(subject, wanted string, find func(string) error) (string, error) {
	for i := n.tried[subject+" "+wanted]; ; i++ {
		name := similar(wanted, i)
		if n.taken[subject+" "+name] {
			continue
		}
		err := find(name)
		if errors.Is(err, backend.ErrNotFound) {
			n.taken[subject+" "+name], n.tried[subject+" "+wanted] = true, i+1
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// similar returns the name to try after a number of others.
func similar(wanted string, tried int) string {
	if tried == 0 {
		return wanted
	}
	name := strings.ToValidUTF8(wanted[:min(len(wanted), longName)], "") + theirsSuffix
	if tried > 1 {
		name += "-" + strconv.Itoa(tried)
	}
	return name
}
