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

// theirsSuffix makes a free name of one that is taken.
const theirsSuffix = "-theirs"

// longName is how much of a name is kept where something is added: names are bounded.
const longName = 2 << 10

// names adds what a thread calls its contexts and spans, and what the bundle says of
// the thread if it was changed there last.
func (im *importer) names(c *structure.Commit) error {
	theirs := c.Records[len(c.Records)-1].(*structure.Thread)
	ours, err := im.engine.Thread(im.ctx, theirs.ID)
	if err != nil {
		return err
	}
	n := naming{Batch: im.batch(), im: im, thread: theirs.ID, contexts: make(map[structure.ContextID]struct{}), points: make(map[structure.CheckpointID]struct{}), taken: make(map[string]struct{})}
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
		default:
			err = im.corrupt("a %v among names", r.Kind())
		}
		if err != nil {
			return err
		}
	}
	is, err := im.thread(ours, theirs)
	if err != nil {
		return err
	}
	if !structure.Equal(is, ours) {
		n.Adopt(is)
		n.ExpectThread(ours.ID, ours)
	}
	_, err = im.commit(n.Batch)
	return err
}

// thread returns what a thread is to be.
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
			return nil, im.corrupt("context %v is active in thread %v and of another", active, theirs.ID)
		}
	}
	is := *ours
	if newer := later(theirs.UpdatedAt, ours.UpdatedAt); newer {
		is = *theirs
		is.SourceID, is.Incarnation, is.CreatedAt, is.Active, is.Keeps = ours.SourceID, ours.Incarnation, ours.CreatedAt, ours.Active, ours.Keeps
		if !active.IsZero() {
			is.Active = active
		}
	}
	if is.Active.IsZero() {
		is.Active = active
	}
	return &is, nil
}

// naming is the names of a thread in the making.
type naming struct {
	*write.Batch
	im       *importer
	thread   structure.ThreadID
	contexts map[structure.ContextID]struct{} // that have a name
	points   map[structure.CheckpointID]struct{}
	taken    map[string]struct{} // names and source ids, by records
}

func (n *naming) load() error {
	for b, err := range n.im.engine.Branches(n.im.ctx, n.thread, "", "") {
		if err != nil {
			return err
		}
		n.contexts[b.Context] = struct{}{}
	}
	for c, err := range n.im.engine.Checkpoints(n.im.ctx, n.thread, "") {
		if err != nil {
			return err
		}
		n.points[c.ID] = struct{}{}
	}
	return nil
}

// branch names a context that has no name here.
func (n *naming) branch(b *structure.Branch) error {
	b.Context = n.im.contextHere(b.Context)
	if _, named := n.contexts[b.Context]; named {
		return nil
	}
	n.contexts[b.Context] = struct{}{}
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

// checkpoint names a span, unless that has the same name already.
func (n *naming) checkpoint(c *structure.Checkpoint) error {
	c.Span = n.im.here(c.Span)
	if _, known := n.points[c.ID]; known {
		return nil
	}
	n.points[c.ID] = struct{}{}
	if is, err := n.im.engine.Checkpoint(n.im.ctx, n.thread, c.Name); err == nil && is.Span == c.Span {
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

// freeSource returns a source id, or none where something of the thread has it.
func freeSource[R any](n *naming, subject, sourceID string, find func(context.Context, string, structure.ThreadID) iter.Seq2[R, error]) (string, error) {
	k := "source of " + subject + " " + sourceID
	if _, taken := n.taken[k]; taken {
		return "", nil
	}
	n.taken[k] = struct{}{}
	for _, err := range find(n.im.ctx, sourceID, n.thread) {
		return "", err
	}
	return sourceID, nil
}

// free returns a name like the one wanted that nothing has.
func (n *naming) free(subject, wanted string, look func(string) error) (string, error) {
	name := wanted
	for i := 1; ; i++ {
		if _, taken := n.taken[subject+" "+name]; !taken {
			err := look(name)
			if errors.Is(err, backend.ErrNotFound) {
				n.taken[subject+" "+name] = struct{}{}
				return name, nil
			}
			if err != nil {
				return "", err
			}
		}
		if name = strings.ToValidUTF8(wanted[:min(len(wanted), longName)], "") + theirsSuffix; i > 1 {
			name += "-" + strconv.Itoa(i)
		}
	}
}
