package write

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Thread describes a new thread. A zero ID is replaced by a new one.
type Thread struct {
	ID       structure.ThreadID
	SourceID string
	UserID   string
	Title    string
	Metadata []byte
	Keeps    bool
	// CreatedAt and UpdatedAt default to the time of the commit.
	CreatedAt, UpdatedAt time.Time
	// Incarnation defaults to a new one.
	Incarnation uint64
}

// NewThread adds a thread without branches and returns its record. The commit is refused if the thread
// exists. The id of a thread with a source id is derived from the source id.
func (b *Batch) NewThread(t Thread) *structure.Thread {
	switch {
	case t.SourceID != "":
		t.ID = SourceThread(t.SourceID)
	case t.ID.IsZero():
		t.ID = structure.NewIDAt[structure.ThreadID](b.commit.Time)
	}
	if t.CreatedAt.IsZero() {
		t.CreatedAt = b.Time()
	}
	if t.Incarnation == 0 {
		t.Incarnation = structure.NewIncarnation()
	}
	if t.UpdatedAt.IsZero() {
		t.UpdatedAt = b.Time()
	}
	thread := &structure.Thread{
		ID: t.ID, SourceID: t.SourceID, UserID: t.UserID, Title: t.Title, Metadata: t.Metadata, Keeps: t.Keeps,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Incarnation: t.Incarnation,
	}
	b.ExpectThread(t.ID, nil)
	b.add(thread)
	return thread
}

// SourceThread returns the id of the thread with a source id.
func SourceThread(sourceID string) structure.ThreadID {
	return structure.DeriveID[structure.ThreadID]("thread", sourceID)
}

// SourceBranch returns the id of the context of the branch with a source id. A source id that has the form of
// an id is used as the id.
func SourceBranch(sourceID string) structure.ContextID {
	if id, err := structure.ParseID[structure.ContextID](sourceID); err == nil && !id.IsZero() && id.String() == sourceID {
		return id
	}
	return structure.DeriveID[structure.ContextID]("branch", sourceID)
}

// StateThread adds the new state of a thread. It adds no expectation; ChangeThread does.
func (b *Batch) StateThread(t structure.Thread) *structure.Thread {
	b.add(&t)
	return &t
}

// ChangeThread adds the new state of a thread, and the old one as an expectation. UpdatedAt always increases,
// so that an old state never returns.
func (b *Batch) ChangeThread(was *structure.Thread, now structure.Thread) *structure.Thread {
	b.ExpectThread(was.ID, was)
	if now.UpdatedAt = b.Time(); !now.UpdatedAt.After(was.UpdatedAt) {
		now.UpdatedAt = was.UpdatedAt.Add(time.Millisecond)
	}
	return b.StateThread(now)
}

// Context describes a new context. A zero ID is replaced by a new one.
type Context struct {
	ID     structure.ContextID
	Thread structure.ThreadID
	Parent structure.ContextID
	// At is the span that the context starts after. Set is the span set that it is an alternative of.
	At  structure.SpanRef
	Set structure.SpanSetID
	// Tip is the head of the context. It defaults to At.
	Tip       structure.SpanRef
	Overrides structure.Overrides
	Metadata  []byte
	// CreatedAt defaults to the time of the commit.
	CreatedAt time.Time
}

// Remnant returns the record that replaces the context when it is deleted and has forks. The two share
// memory.
func (c *Context) Remnant() *structure.Remnant {
	return &structure.Remnant{ID: c.ID, Parent: c.Parent, Overrides: c.Overrides}
}

// NewContext adds a context and returns its record.
func (b *Batch) NewContext(c Context) *structure.Context {
	if c.ID.IsZero() {
		c.ID = structure.NewIDAt[structure.ContextID](b.commit.Time)
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = b.Time()
	}
	if c.Tip.IsZero() {
		c.Tip = c.At
	}
	made := &b.context
	if !made.ID.IsZero() {
		made = new(structure.Context)
	}
	*made = structure.Context{
		ID: c.ID, Thread: c.Thread, Parent: c.Parent, Base: c.At, Tip: c.Tip, Set: c.Set,
		Overrides: c.Overrides, Metadata: c.Metadata, CreatedAt: c.CreatedAt,
	}
	b.add(made)
	return made
}

// StateContext adds the new state of a context.
func (b *Batch) StateContext(c structure.Context) { b.add(&c) }

// Remnant adds a deleted context of which only the id is known.
func (b *Batch) Remnant(id structure.ContextID) { b.add(&structure.Remnant{ID: id}) }

// Branch gives a context the name of a branch. It increments the thread's count of branches; the caller adds
// the thread's record.
func (b *Batch) Branch(thread *structure.Thread, name, sourceID string, id structure.ContextID, created time.Time) *structure.Branch {
	thread.Named++
	branch := &structure.Branch{Thread: thread.ID, Name: name, SourceID: sourceID, Context: id, Order: thread.Named, CreatedAt: created}
	b.add(branch)
	return branch
}

// RenameBranch replaces the name of a branch.
func (b *Batch) RenameBranch(was *structure.Branch, name string) {
	b.DeleteBranch(was.Thread, was.Name)
	branch := *was
	branch.Name = name
	b.add(&branch)
}

// Checkpoint describes a checkpoint that is created, or moved if it exists. A zero ID is replaced by a new
// one.
type Checkpoint struct {
	ID       structure.CheckpointID
	Name     string
	SourceID string
	At       structure.SpanRef
	// CreatedAt defaults to the time of the commit.
	CreatedAt time.Time
}

// Checkpoint adds a checkpoint and returns its record. It increments the thread's count of checkpoints; the
// caller adds the thread's record.
func (b *Batch) Checkpoint(thread *structure.Thread, c Checkpoint) *structure.Checkpoint {
	if c.ID.IsZero() {
		c.ID = structure.NewIDAt[structure.CheckpointID](b.commit.Time)
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = b.Time()
	}
	thread.Named++
	checkpoint := &structure.Checkpoint{
		ID: c.ID, Thread: thread.ID, Name: c.Name, SourceID: c.SourceID, Span: c.At, Order: thread.Named, CreatedAt: c.CreatedAt,
	}
	b.add(checkpoint)
	return checkpoint
}

// SpanSet adds a set of count alternatives after a span.
func (b *Batch) SpanSet(after structure.SpanRef, count int) structure.SpanSetID {
	set := &structure.SpanSet{ID: structure.NewIDAt[structure.SpanSetID](b.commit.Time), Parent: after, Count: uint64(count), CreatedAt: b.Time()}
	b.add(set)
	return set.ID
}

// Summary adds a summary with an id of its own and the time of the commit, and returns the
// record.
func (b *Batch) Summary(s structure.Summary) *structure.Summary {
	s.ID, s.CreatedAt = structure.NewIDAt[structure.SummaryID](b.commit.Time), b.Time()
	b.add(&s)
	return &s
}

// Chunk adds a piece of a body.
func (b *Batch) Chunk(key content.Key, bytes []byte) {
	b.add(&structure.Chunk{Key: key, Bytes: bytes})
}

// Value sets a named value to JSON, or to the content with an id. With neither it deletes the value. If the
// value belongs to a context, seen is the head of that context.
func (b *Batch) Value(key structure.ValueKey, incarnation uint64, json []byte, in content.ID, seen structure.SpanRef) {
	b.add(&structure.Value{ValueKey: key, Incarnation: incarnation, JSON: json, Content: in, Seen: seen, At: b.Time()})
}

func (b *Batch) DeleteThread(id structure.ThreadID) {
	b.delete(structure.Deletion{Subject: structure.KindThread, Thread: id})
}

func (b *Batch) DeleteContext(id structure.ContextID) {
	b.delete(structure.Deletion{Subject: structure.KindContext, Context: id})
}

func (b *Batch) DeleteBranch(thread structure.ThreadID, name string) {
	b.delete(structure.Deletion{Subject: structure.KindBranch, Thread: thread, Name: name})
}

func (b *Batch) DeleteCheckpoint(thread structure.ThreadID, name string) {
	b.delete(structure.Deletion{Subject: structure.KindCheckpoint, Thread: thread, Name: name})
}

func (b *Batch) DeleteSummary(context structure.ContextID, id structure.SummaryID) {
	b.delete(structure.Deletion{Subject: structure.KindSummary, Context: context, Summary: id})
}

// Erase removes the bytes of a block.
func (b *Batch) Erase(id content.ID) {
	b.delete(structure.Deletion{Subject: structure.KindBlock, Content: id})
}

func (b *Batch) delete(d structure.Deletion) {
	d.At = b.Time()
	b.add(&d)
}
