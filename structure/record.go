package structure

import (
	"bytes"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/content"
)

// Kind is the kind of a record. The values are part of the disk format.
type Kind uint8

// The kinds of record.
const (
	KindBlock      Kind = 1
	KindChunk      Kind = 2
	KindThread     Kind = 3
	KindContext    Kind = 4
	KindTip        Kind = 5
	KindRun        Kind = 6
	KindSpan       Kind = 7
	KindSpanSet    Kind = 8
	KindBranch     Kind = 9
	KindCheckpoint Kind = 10
	KindSummary    Kind = 11
	KindReflog     Kind = 12
	KindDeletion   Kind = 13
	KindCut        Kind = 14
	KindValue      Kind = 15
)

var kindNames = [...]string{
	KindBlock: "block", KindChunk: "chunk", KindThread: "thread", KindContext: "context",
	KindTip: "tip", KindRun: "run", KindSpan: "span", KindSpanSet: "span set", KindBranch: "branch",
	KindCheckpoint: "checkpoint", KindSummary: "summary", KindReflog: "reflog entry", KindDeletion: "deletion", KindCut: "cut",
	KindValue: "value",
}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "record kind " + strconv.Itoa(int(k))
}

// Record is one immutable statement in a commit. Records of threads, contexts,
// branches and checkpoints state the whole of their subject: a later one of the
// same id replaces what an earlier one said.
type Record interface {
	Kind() Kind
}

// Block is a content block on its way into a store, with its bytes. One that was
// collected after it was erased is gone: its description without bytes.
type Block struct {
	content.Block
	// Body is the whole body when Tree is zero and the block is not gone.
	Body []byte
	// Tree is the root of the chunks of a body that was cut, else zero.
	Tree content.Root

	summed bool // ID was computed from Body
}

// Described returns the block of a description, without its bytes.
func Described(b content.Block) *Block { return &Block{Block: b} }

// NewBlock returns the block of a body that is kept whole. Its id is computed
// from the body, which must not change from here on.
func NewBlock(mediaType string, origin content.BlockOrigin, createdAt time.Time, body []byte) *Block {
	b := new(Block)
	b.Hold(mediaType, origin, createdAt, body)
	return b
}

// Hold makes b what NewBlock returns.
func (b *Block) Hold(mediaType string, origin content.BlockOrigin, createdAt time.Time, body []byte) {
	*b = Block{
		Block: content.Block{
			ID: content.Sum(body), Type: mediaType, Size: int64(len(body)), Origin: origin, CreatedAt: createdAt,
		},
		Body: body, summed: true,
	}
}

// Summed reports whether the id is known to be that of the body: NewBlock made it.
func (b *Block) Summed() bool { return b.summed }

// Gone reports that nothing but the description of the block is left. An empty
// body has nothing to lose.
func (b *Block) Gone() bool { return b.Body == nil && b.Tree.Size == 0 && b.Size > 0 }

// Chunk is a piece of a body that was cut, or a node of the tree over them. Its
// key is the BLAKE3 of its bytes.
type Chunk struct {
	Key   content.Key
	Bytes []byte
}

// Thread is a conversation.
type Thread struct {
	ID ThreadID
	// SourceID is the id its caller chose, else empty.
	SourceID string
	UserID   string
	Title    string
	// Metadata is JSON, kept byte for byte; nil when absent.
	Metadata []byte
	// Active is the context whose branch is the active one, zero before the first.
	Active ContextID
	// Incarnation is a random number that distinguishes the thread from an earlier one that
	// had the same id and was deleted.
	Incarnation uint64
	// Keeps says that all runs of the thread live as long as it does, whether a context
	// leads there or not.
	Keeps     bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Overrides are what a context sets differently from what it inherits. A nil
// field inherits.
type Overrides struct {
	SystemPrompt *string
	Model        *string
	// JSON is any further overrides as JSON, kept byte for byte. It is merged with what is inherited as a
	// JSON merge patch.
	JSON []byte
}

// Clone returns a copy that shares no memory with o.
func (o Overrides) Clone() Overrides {
	return Overrides{SystemPrompt: cloneText(o.SystemPrompt), Model: cloneText(o.Model), JSON: bytes.Clone(o.JSON)}
}

// IsZero reports whether o sets nothing.
func (o Overrides) IsZero() bool { return o.SystemPrompt == nil && o.Model == nil && o.JSON == nil }

func cloneText(s *string) *string {
	if s == nil {
		return nil
	}
	return new(*s)
}

// Context is a mutable view of a history. Its tip is stated by the latest of its
// Context and Tip records.
type Context struct {
	ID     ContextID
	Thread ThreadID
	// Parent is the context that this one was forked or spawned from, else zero.
	Parent ContextID
	// Base is the span that it started at; what lies behind it is inherited.
	Base SpanRef
	// Tip is its current span; zero while it is empty.
	Tip SpanRef
	// Set is the span set that this context fills an alternative of, else zero.
	Set       SpanSetID
	Overrides Overrides
	// Metadata is JSON, kept byte for byte; nil when absent.
	Metadata  []byte
	CreatedAt time.Time
}

// Tip moves a context to a span.
type Tip struct {
	Context ContextID
	Span    SpanRef
}

// Run opens a straight line of spans that starts after Parent.
type Run struct {
	ID     RunID
	Parent SpanRef
	// Home is the thread that the messages of the run belong to, zero for a run outside
	// threads.
	Home Home
}

// Home is the thread that a run or a value belongs to. A thread that was deleted and created
// again under the same id has another incarnation, and is another home.
type Home struct {
	Thread      ThreadID
	Incarnation uint64
}

// Home returns the home of the thread's runs and values.
func (t *Thread) Home() Home { return Home{t.ID, t.Incarnation} }

// SpanSet is a position at which alternatives are offered: its spans all follow
// Parent.
type SpanSet struct {
	ID     SpanSetID
	Parent SpanRef
	// Count is how many alternatives were asked for.
	Count     uint64
	CreatedAt time.Time
}

// Branch names a context within its thread.
type Branch struct {
	Thread ThreadID
	Name   string
	// SourceID is the id that its caller chose, unique among the branches of its thread;
	// else empty.
	SourceID  string
	Context   ContextID
	CreatedAt time.Time
}

// Checkpoint is a named and fixed pointer to a span, unique in its thread.
type Checkpoint struct {
	ID     CheckpointID
	Thread ThreadID
	Name   string
	// SourceID is the id that its caller chose, unique among the checkpoints of its
	// thread; else empty.
	SourceID  string
	Span      SpanRef
	CreatedAt time.Time
}

// Summary states that a content block stands for the spans after From up to and
// including To, as seen from Context.
type Summary struct {
	ID       SummaryID
	Context  ContextID
	Content  content.ID
	From, To SpanRef
	// Level is 0 for a summary of spans and one more than its parts for a
	// summary of summaries.
	Level uint64
	// Parts are the summaries that a summary of summaries was made from.
	Parts []SummaryID
	Model string
	// Embedding is an optional vector, as the caller encoded it.
	Embedding []byte
	CreatedAt time.Time
}

// Reflog records a move of a tip other than forward, so that it can be undone.
type Reflog struct {
	Context  ContextID
	From, To SpanRef
	Reason   string
	At       time.Time
}

// Deletion deletes a subject from the store. Exactly the fields that its Subject needs are
// set.
type Deletion struct {
	// Subject is the kind of record that is deleted: thread, context, branch, checkpoint,
	// summary, or block (an erasure).
	Subject Kind
	Thread  ThreadID
	Context ContextID
	Name    string // of a branch or checkpoint in Thread
	Summary SummaryID
	Content content.ID
	At      time.Time
}

// Cut states that spans of a run were collected from its end. The rest of the run stays. No
// span may follow in it, so that the address of a span is never used again.
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
func (*Value) Kind() Kind      { return KindValue }

// Commit is an atomic list of records. The engine that applies it gives it its
// number; numbers start at 1 and have no gaps.
type Commit struct {
	Number  uint64
	ID      uint64 // distinguishes commits that had the same number; not part of the binary form
	Time    time.Time
	Records []Record
}
