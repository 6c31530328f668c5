package structure

import (
	"bytes"
	"cmp"
	"time"

	"github.com/lineage-store/lineage/content"
)

// Record is one immutable statement in a commit. Records of threads, contexts, branches and
// checkpoints state their subject completely: a later record with the same id replaces an
// earlier one.
type Record interface {
	Kind() Kind
}

// Block is a content block to store, with its bytes. A block that was erased and collected
// is gone: only its description is left.
type Block struct {
	content.Block
	// Body is the whole body if Tree is zero and the block is not gone.
	Body []byte
	// Tree is the root of the chunks of a chunked body, or zero.
	Tree content.Root

	summed bool // ID was computed from Body
}

// Described returns a block with a description only.
func Described(b content.Block) *Block { return &Block{Block: b} }

// NewBlock returns a block with a whole body. Its id is computed from the body, which must
// not change afterwards.
func NewBlock(mediaType string, origin content.BlockOrigin, createdAt time.Time, body []byte) *Block {
	b := new(Block)
	b.Hold(mediaType, origin, createdAt, body)
	return b
}

// Hold sets b to the result of NewBlock.
func (b *Block) Hold(mediaType string, origin content.BlockOrigin, createdAt time.Time, body []byte) {
	*b = Block{
		Block: content.Block{
			ID: content.Sum(body), Type: mediaType, Size: int64(len(body)), Origin: origin, CreatedAt: createdAt,
		},
		Body: body, summed: true,
	}
}

// Summed reports whether NewBlock computed the id from the body.
func (b *Block) Summed() bool { return b.summed }

// Gone reports whether only the description of the block is left. An empty body is never
// gone.
func (b *Block) Gone() bool { return b.Body == nil && b.Tree.Size == 0 && b.Size > 0 }

// Chunk is a part of a chunked body, or a node of the tree over its parts. Its key is the
// BLAKE3 of its bytes.
type Chunk struct {
	Key   content.Key
	Bytes []byte
}

// Thread is a conversation.
type Thread struct {
	ID ThreadID
	// SourceID is the id chosen by the caller, or empty.
	SourceID string
	UserID   string
	Title    string
	// Metadata is JSON, stored byte for byte; nil if absent.
	Metadata []byte
	// Active is the context of the active branch, or zero.
	Active ContextID
	// Incarnation is a random number that distinguishes the thread from a deleted thread
	// with the same id.
	Incarnation uint64
	// Keeps retains all runs of the thread as long as the thread, even if they are in no
	// context.
	Keeps bool
	// Named counts the branches and checkpoints that were created in the thread, deleted
	// ones included.
	Named     uint64
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Overrides are settings of a context that differ from the inherited ones. A nil field is
// inherited.
type Overrides struct {
	SystemPrompt *string
	Model        *string
	// JSON has further overrides, stored byte for byte. It is applied to the inherited JSON
	// as a JSON merge patch.
	JSON []byte
}

// Clone returns a copy that shares no memory with o.
func (o Overrides) Clone() Overrides {
	return Overrides{SystemPrompt: cloneText(o.SystemPrompt), Model: cloneText(o.Model), JSON: bytes.Clone(o.JSON)}
}

// IsZero reports whether o overrides nothing.
func (o Overrides) IsZero() bool { return o.SystemPrompt == nil && o.Model == nil && o.JSON == nil }

func cloneText(s *string) *string {
	if s == nil {
		return nil
	}
	return new(*s)
}

// Context is a mutable view of a history. Its tip is in the latest of its Context and Tip
// records.
type Context struct {
	ID     ContextID
	Thread ThreadID
	// Parent is the context that this one was forked or spawned from, or zero.
	Parent ContextID
	// Base is the span that it started at; the history up to it is inherited.
	Base SpanRef
	// Tip is its current span; zero while it is empty.
	Tip SpanRef
	// Set is the span set of which this context is an alternative, or zero.
	Set       SpanSetID
	Overrides Overrides
	// Metadata is JSON, stored byte for byte; nil if absent.
	Metadata  []byte
	CreatedAt time.Time
}

// Remnant is what is left of a deleted context from which others were forked: they still inherit
// its overrides.
type Remnant struct {
	ID        ContextID
	Parent    ContextID // context or remnant that it was forked from, or zero
	Overrides Overrides
}

// Tip moves a context to a span.
type Tip struct {
	Context ContextID
	Span    SpanRef
}

// Run creates a straight line of spans after Parent.
type Run struct {
	ID     RunID
	Parent SpanRef
	// Home is the thread that the messages of the run belong to, or zero.
	Home Home
}

// Home is the thread that a run or a value belongs to. A thread that was deleted and
// created again with the same id has another incarnation, and is another home.
type Home struct {
	Thread      ThreadID
	Incarnation uint64
}

// Home returns the home of the thread's runs and values.
func (t *Thread) Home() Home { return Home{t.ID, t.Incarnation} }

// SpanSet is a position with alternatives: all of its spans follow Parent.
type SpanSet struct {
	ID     SpanSetID
	Parent SpanRef
	// Count is the number of requested alternatives.
	Count     uint64
	CreatedAt time.Time
}

// Branch names a context within its thread.
type Branch struct {
	Thread ThreadID
	Name   string
	// SourceID is the id chosen by the caller, unique among the branches of its thread, or
	// empty.
	SourceID string
	Context  ContextID
	// Order numbers the branches and checkpoints of the thread as they were created.
	Order     uint64
	CreatedAt time.Time
}

// Compare compares branches of a thread by their creation.
func (b *Branch) Compare(other *Branch) int {
	return cmp.Or(b.CreatedAt.Compare(other.CreatedAt), cmp.Compare(b.Order, other.Order), b.Context.Compare(other.Context))
}

// Checkpoint is a named, fixed reference to a span, unique in its thread.
type Checkpoint struct {
	ID     CheckpointID
	Thread ThreadID
	Name   string
	// SourceID is the id chosen by the caller, unique among the checkpoints of its thread,
	// or empty.
	SourceID string
	Span     SpanRef
	// Order numbers the branches and checkpoints of the thread as they were created.
	Order     uint64
	CreatedAt time.Time
}

// Compare compares checkpoints of a thread by their creation.
func (c *Checkpoint) Compare(other *Checkpoint) int {
	return cmp.Or(c.CreatedAt.Compare(other.CreatedAt), cmp.Compare(c.Order, other.Order), c.ID.Compare(other.ID))
}

// Summary states that a content block summarizes the spans after From up to and including
// To, in the history of Context.
type Summary struct {
	ID       SummaryID
	Context  ContextID
	Content  content.ID
	From, To SpanRef
	// Level is 0 for a summary of spans, and one more than that of its parts for a summary
	// of summaries.
	Level uint64
	// Parts are the sources of a summary of summaries.
	Parts []SummaryID
	Model string
	// Embedding is an optional vector in the caller's encoding.
	Embedding []byte
	CreatedAt time.Time
}

// WithoutEmbedding returns the summary itself if it has no embedding, else a copy without it: an
// embedding must not survive the text that it was made of.
func (r *Summary) WithoutEmbedding() *Summary {
	if r.Embedding == nil {
		return r
	}
	without := *r
	without.Embedding = nil
	return &without
}

// Reflog records a move of a tip other than forward, so that it can be undone.
type Reflog struct {
	Context  ContextID
	From, To SpanRef
	Reason   string
	At       time.Time
}

// Deletion deletes a subject. Exactly the fields that its Subject needs are set.
type Deletion struct {
	// Subject is the kind of the deleted record: thread, context, branch, checkpoint,
	// summary, or block (an erasure).
	Subject Kind
	Thread  ThreadID
	Context ContextID
	Name    string // of a branch or checkpoint in Thread
	Summary SummaryID
	Content content.ID
	At      time.Time
}

// Remnant returns what is left of the context if it is deleted and has forks. It shares memory
// with the context.
func (c *Context) Remnant() *Remnant {
	return &Remnant{ID: c.ID, Parent: c.Parent, Overrides: c.Overrides}
}

// Cut states that the last spans of a run were collected. The rest of the run stays. No
// span may follow, so that the address of a span is never reused.
type Cut struct{ Run RunID }

func (*Block) Kind() Kind      { return KindBlock }
func (*Chunk) Kind() Kind      { return KindChunk }
func (*Thread) Kind() Kind     { return KindThread }
func (*Context) Kind() Kind    { return KindContext }
func (*Tip) Kind() Kind        { return KindTip }
func (*Run) Kind() Kind        { return KindRun }
func (*SpanSet) Kind() Kind    { return KindSpanSet }
func (*Branch) Kind() Kind     { return KindBranch }
func (*Checkpoint) Kind() Kind { return KindCheckpoint }
func (*Summary) Kind() Kind    { return KindSummary }
func (*Reflog) Kind() Kind     { return KindReflog }
func (*Deletion) Kind() Kind   { return KindDeletion }
func (*Cut) Kind() Kind        { return KindCut }
func (*Remnant) Kind() Kind    { return KindRemnant }

// Commit is an atomic list of records. The engine assigns the number; numbers start at 1
// and have no gaps.
type Commit struct {
	Number  uint64
	ID      uint64 // distinguishes commits that had the same number; not part of the binary form
	Time    time.Time
	Records []Record
}
