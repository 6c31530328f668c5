package write

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Thread is a new thread. Zero ids are made.
type Thread struct {
	ID       structure.ThreadID
	SourceID string
	UserID   string
	Title    string
	Metadata []byte
	Keeps    bool
	// CreatedAt and UpdatedAt are by default the time of the commit.
	CreatedAt, UpdatedAt time.Time
	// Incarnation is by default a new one.
	Incarnation uint64
}

// NewThread adds a thread that must not be there, without a branch, and returns its record.
// A thread with a source id has the id that is derived of it.
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
	is := &structure.Thread{
		ID: t.ID, SourceID: t.SourceID, UserID: t.UserID, Title: t.Title, Metadata: t.Metadata, Keeps: t.Keeps,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Incarnation: t.Incarnation,
	}
	b.ExpectThread(t.ID, nil)
	b.add(is)
	return is
}

// SourceThread returns the id of the thread with a source id.
func SourceThread(sourceID string) structure.ThreadID {
	return structure.DeriveID[structure.ThreadID]("thread", sourceID)
}

// SourceBranch returns the id of the context of the branch with a source id. A source id
// that is the text of an id is that id.
func SourceBranch(sourceID string) structure.ContextID {
	if id, err := structure.ParseID[structure.ContextID](sourceID); err == nil && !id.IsZero() && id.String() == sourceID {
		return id
	}
	return structure.DeriveID[structure.ContextID]("branch", sourceID)
}

// StateThread states a thread as it is from now on. The caller states by itself what it
// must have been before.
func (b *Batch) StateThread(t structure.Thread) *structure.Thread {
	b.add(&t)
	return &t
}

// ChangeThread states a thread anew, and that it must be as it was. Its time of change is
// later than before in any case: a state that has passed never comes back.
func (b *Batch) ChangeThread(was *structure.Thread, is structure.Thread) *structure.Thread {
	b.ExpectThread(was.ID, was)
	if is.UpdatedAt = b.Time(); !is.UpdatedAt.After(was.UpdatedAt) {
		is.UpdatedAt = was.UpdatedAt.Add(time.Millisecond)
	}
	return b.StateThread(is)
}

// Context is a new context. A zero id is made.
type Context struct {
	ID     structure.ContextID
	Thread structure.ThreadID
	Parent structure.ContextID
	// At is where it begins, Set the set that it fills an alternative of.
	At  structure.SpanRef
	Set structure.SpanSetID
	// Tip is where it points to, by default where it begins.
	Tip       structure.SpanRef
	Overrides structure.Overrides
	Metadata  []byte
	// CreatedAt is by default the time of the commit.
	CreatedAt time.Time
}

// Remnant returns what is left of the context if it is deleted and has forks. It shares memory with
// the context.
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
	is := &b.context
	if !is.ID.IsZero() {
		is = new(structure.Context)
	}
	*is = structure.Context{
		ID: c.ID, Thread: c.Thread, Parent: c.Parent, Base: c.At, Tip: c.Tip, Set: c.Set,
		Overrides: c.Overrides, Metadata: c.Metadata, CreatedAt: c.CreatedAt,
	}
	b.add(is)
	return is
}

// StateContext states a context as it is from now on.
func (b *Batch) StateContext(c structure.Context) { b.add(&c) }

// Remnant states a deleted context of which only the id is known.
func (b *Batch) Remnant(id structure.ContextID) { b.add(&structure.Remnant{ID: id}) }

// Branch names a context. It counts the branch in the thread, which the caller states.
func (b *Batch) Branch(thread *structure.Thread, name, sourceID string, id structure.ContextID, created time.Time) *structure.Branch {
	thread.Named++
	is := &structure.Branch{Thread: thread.ID, Name: name, SourceID: sourceID, Context: id, Order: thread.Named, CreatedAt: created}
	b.add(is)
	return is
}

// RenameBranch gives a branch another name.
func (b *Batch) RenameBranch(was *structure.Branch, name string) {
	b.DeleteBranch(was.Thread, was.Name)
	is := *was
	is.Name = name
	b.add(&is)
}

// Checkpoint is a checkpoint to be made, or to be moved where it is there. A zero id is
// made.
type Checkpoint struct {
	ID       structure.CheckpointID
	Name     string
	SourceID string
	At       structure.SpanRef
	// CreatedAt is by default the time of the commit.
	CreatedAt time.Time
}

// Checkpoint names a span, and returns the record. It counts the checkpoint in the thread, which
// the caller states.
func (b *Batch) Checkpoint(thread *structure.Thread, c Checkpoint) *structure.Checkpoint {
	if c.ID.IsZero() {
		c.ID = structure.NewIDAt[structure.CheckpointID](b.commit.Time)
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = b.Time()
	}
	thread.Named++
	is := &structure.Checkpoint{
		ID: c.ID, Thread: thread.ID, Name: c.Name, SourceID: c.SourceID, Span: c.At, Order: thread.Named, CreatedAt: c.CreatedAt,
	}
	b.add(is)
	return is
}

// SpanSet offers a number of alternatives after a span.
func (b *Batch) SpanSet(after structure.SpanRef, count int) structure.SpanSetID {
	is := &structure.SpanSet{ID: structure.NewIDAt[structure.SpanSetID](b.commit.Time), Parent: after, Count: uint64(count), CreatedAt: b.Time()}
	b.add(is)
	return is.ID
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

// Value sets a named value, to JSON or to content that has it, or deletes it without either.
// Seen is where the context stands that it belongs to, if it does.
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

func (b *Batch) DeleteSummary(of structure.ContextID, id structure.SummaryID) {
	b.delete(structure.Deletion{Subject: structure.KindSummary, Context: of, Summary: id})
}

// Erase removes the bytes of a block.
func (b *Batch) Erase(id content.ID) {
	b.delete(structure.Deletion{Subject: structure.KindBlock, Content: id})
}

func (b *Batch) delete(d structure.Deletion) {
	d.At = b.Time()
	b.add(&d)
}
