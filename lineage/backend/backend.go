// Package backend is the port between lineage and a storage engine: what a store needs of a
// storage engine.
//
// An engine keeps commits in order and answers reads about them. It enforces the
// invariants listed at [Engine.Apply], and package backendtest checks that it
// does. Nothing here assumes one process, a local file or a clock: an engine may
// be a network round trip away, so reads come in batches and sequences.
package backend

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Durability says when a commit is acknowledged.
type Durability uint8

const (
	// DefaultDurability is what the engine was opened with.
	DefaultDurability Durability = iota
	// Full acknowledges a commit when it survives power loss.
	Full
	// Normal acknowledges a commit when it survives the death of the process. A bounded time
	// later it survives power loss too; before that, a power loss may lose it and everything
	// after it.
	Normal
)

// String returns the name of the durability.
func (d Durability) String() string {
	switch d {
	case Full:
		return "full"
	case Normal:
		return "normal"
	}
	return "default"
}

// Options are the conditions and the durability of one commit.
type Options struct {
	Durability Durability
	// Tips are the positions that contexts must have just before the commit. If
	// one has another, nothing is applied and a *TipError is returned.
	Tips []Expect
	// Threads are states that threads must have just before the commit. If one has
	// another, nothing is applied and the error matches ErrConflict, or ErrExists
	// when it should not have been there.
	Threads []ExpectThread
	// Contexts are states that contexts must have just before the commit, in the same way.
	Contexts []ExpectContext
	// Once, when not nil, says which request of a session the commit is: it is applied once,
	// however often it is sent.
	Once *Once
	// Branches and Checkpoints are states that names must have just before the commit, in
	// the same way.
	Branches    []ExpectBranch
	Checkpoints []ExpectCheckpoint
	// Values are states that values must have just before the commit, in the same way.
	Values []ExpectValue
	// Sources are what source ids of usages must lead to just before the commit. If one
	// leads to something else, nothing is applied and the error matches ErrExists, where it
	// should have led to nothing, or ErrConflict.
	Sources []ExpectSource
}

// ExpectThread is the state that a thread must have: nil when it must not exist.
type ExpectThread struct {
	ID  structure.ThreadID
	Was *structure.Thread
}

// ExpectContext is the state that a context must have, tip included: nil when it must not
// exist.
type ExpectContext struct {
	ID  structure.ContextID
	Was *structure.Context
}

// Expect is a position that a context must have.
type Expect struct {
	Context structure.ContextID
	Tip     structure.SpanRef
}

// Receipt is the result of a commit.
type Receipt struct {
	// Cursor is the number that the commit got, and its id.
	Cursor
	// Repeated is set when the same request of a session was applied before: the cursor is
	// that of the earlier commit, and the other fields are zero.
	Repeated bool
	// Known lists the blocks whose bytes the store already had. They were not stored again and
	// keep the description that was first recorded with them.
	Known []content.ID
	// KnownChunks counts the chunks that the store already had.
	KnownChunks int
}

// View reads a store: its latest state, snapshots of it, and its commits. All methods are
// safe for concurrent use.
type View interface {
	// Reader reads the latest state: each call sees every commit that was acknowledged before
	// it.
	Reader

	// Snapshot returns the state after the latest commit, for any number of
	// reads. It must be closed. It does not wait for writers.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Feed yields the commits after a cursor, in order, up to the last one at the time of the
	// call. Block bodies are included, except those that were erased since. Commits come
	// without the records that a Collector deleted, possibly without any. A cursor that is not
	// of this history is ErrDiverged.
	Feed(ctx context.Context, after Cursor) iter.Seq2[*structure.Commit, error]

	// Wait returns the cursor of the last commit as soon as there is a commit after the given
	// one. A cursor that is not of this history is ErrDiverged.
	Wait(ctx context.Context, after Cursor) (Cursor, error)
}

// Engine keeps commits. All methods are safe for concurrent use.
type Engine interface {
	View

	// Apply adds a commit, whole or not at all, and returns when it is as durable as asked
	// for. It gives the commit its number, one more than the last, and its time when it has
	// none; it does not keep the commit's memory. Content that the store has is not stored
	// again; a usage that leaves its type or origin to such a block of the same commit gets
	// what that block says. A block without its bytes is for content that the same commit
	// erases: it records the description of content that was erased in another store, and is
	// ErrExists if the store has the content.
	//
	// A value of a thread or context is deleted with it. It belongs to the thread of the
	// incarnation that it states (ErrConflict).
	//
	// A run may name a thread that does not exist, or another incarnation of one: its messages
	// are then not found by source ids.
	//
	// These hold after every commit, or the commit is refused with the error named: a span is
	// the next of its run and its run exists (ErrConflict); a new run, context or span set,
	// and a branch, checkpoint or thread under a new id or name, does not exist under another
	// identity (ErrExists); everything a record refers to exists: parents, tips, threads,
	// contexts, content (ErrNotFound); every record has what its kind requires (ErrInvalid).
	//
	// A commit that was cancelled while waiting for durability may have been
	// applied: the error says so with ErrUncertain.
	//
	// A commit with Options.Once that was applied before is not applied again, whatever its
	// other options: its receipt is Repeated, and returned when the commit is as durable as
	// asked for now. If the engine no longer knows whether it was applied, it applies nothing
	// and the error is ErrUncertain. A request that was refused may be sent again.
	Apply(ctx context.Context, c *structure.Commit, o Options) (Receipt, error)

	// Outcome returns the receipt of a request that was applied, ErrNotFound for one that was
	// not, and ErrUncertain if the engine no longer knows. It does not wait for attempts in
	// progress, nor for durability.
	Outcome(ctx context.Context, o Once) (Receipt, error)

	// Forget ends a session. A request of it that is sent later is ErrUncertain.
	Forget(ctx context.Context, session [16]byte) error

	// Upload stores chunks for the tree of a block that a later commit brings, and returns how
	// many of them the store did not have. They need not be durable before that commit is. The
	// engine may or may not use commits, with numbers, for this. Chunks that no block uses are
	// deleted some time after a Collector has seen them. See [Cut].
	Upload(ctx context.Context, chunks []*structure.Chunk) (added int, err error)

	// Recent returns a reader that may be some commits behind, and answers from memory of this
	// process. A caller that builds a commit on it states what it read in Options, and reads
	// again from the engine itself if that is outdated or something is not found. An engine
	// whose own reads are as cheap returns itself.
	Recent() Reader

	// Sync makes every commit so far survive power loss.
	Sync(ctx context.Context) error

	// Verify checks what is stored and yields what it finds wrong. An error says
	// that checking itself failed.
	Verify(ctx context.Context, o VerifyOptions) iter.Seq2[Finding, error]

	// Close closes the store. Acknowledged commits stay. It waits for calls, but not for open
	// snapshots or for callers that process an element of a sequence.
	Close() error
}

// Snapshot is the state of a store after one commit. It is safe for concurrent use and stays
// as it is until closed. Closing the engine ends it: reading it, or continuing a sequence,
// then returns ErrExpired.
type Snapshot interface {
	Reader
	// Close releases the resources of the snapshot. It is safe to repeat.
	Close() error
}

// IDEnd is the number of bytes at the end of an id by which people name it.
const IDEnd = 4

// Reader reads a state. What it returns is the caller's own unless said
// otherwise. A thing that does not exist is ErrNotFound for single reads and
// nothing for sequences. Listings take the id or name that they continue behind, whether it
// exists or not; the zero value begins at the start.
type Reader interface {
	SourceReader
	ValueReader
	ThreadReader

	// Head returns where the last commit is, the zero cursor in an empty store.
	Head(ctx context.Context) (Cursor, error)

	Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error)
	// Threads yields every thread in the order of their ids.
	Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error]
	// ThreadsEnding yields the threads whose ids end with some bytes, in the order of their
	// ids. It looks at no other thread.
	ThreadsEnding(ctx context.Context, end [IDEnd]byte) iter.Seq2[*structure.Thread, error]

	// Context returns a context with its current tip. What its overrides and metadata
	// point at is shared with others that ask, and must not be changed.
	Context(ctx context.Context, id structure.ContextID) (Context, error)
	// Contexts yields the contexts of a thread in the order of their ids, or all
	// contexts when the id is zero.
	Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[Context, error]
	// ContextsAlone yields the contexts that are in no thread, in the order of their ids.
	ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[Context, error]
	// Children yields the contexts whose parent is the given one, in the order of their ids.
	Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[Context, error]

	Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error)
	// Branches yields the branches of a thread whose names begin with a prefix, in the order
	// of their names. It reads no other branch.
	Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error]
	// BranchesOf yields the branches of a thread that a context is, mostly one or none.
	// It looks at no other branch.
	BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error]

	Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error)
	// Checkpoints yields a thread's checkpoints in the order of their names.
	Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error]

	Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error)
	// Ancestry returns a run and those that it starts behind, nearest first, up to the first
	// of its history but at most limit. To continue, ask for the run that the last one starts
	// behind. See [Runs].
	Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error)
	// Forks yields the runs that start after a span of the given run, by the
	// place they start after; the zero id yields runs that start a history.
	Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error]
	// ForksAt yields the runs that start right after a span. It looks at no other run.
	ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error]
	// Last returns the last span of a run; the zero ref when it has none.
	Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error)

	// Path yields the window of the history that ends at tip, oldest first, by
	// ranges of runs. An unknown tip is ErrNotFound.
	Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o PathOptions) iter.Seq2[*Step, error]
	// Digest returns the digest of the history that ends at tip.
	Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error)

	SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error)
	// Alternatives yields the spans of a span set in the order they were added.
	Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error]

	// Summaries yields the summaries made from a context, oldest first.
	Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error]
	// Reflog yields how a context's tip moved other than forward, oldest first.
	Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error]

	// Has reports for each id whether the block's bytes are there.
	Has(ctx context.Context, ids []content.ID) ([]bool, error)
	// Blocks returns the blocks with these ids, in their order. Bodies that were
	// cut come as their Tree, to be read with Chunks. A missing one is ErrNotFound.
	Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error)
	// Chunks returns the bytes of chunks, in the order of their keys, which they match. A
	// missing one is ErrNotFound. The caller bounds how many it asks for at once.
	Chunks(ctx context.Context, keys []content.Key) ([][]byte, error)
	// Where yields every usage of a block, oldest first.
	Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error]
	// Stats counts what is stored.
	Stats(ctx context.Context) (Stats, error)
}

// BranchOf returns the branch of a thread that a context is: the first by name if there
// are several, nil if there is none.
func BranchOf(ctx context.Context, r Reader, thread structure.ThreadID, id structure.ContextID) (*structure.Branch, error) {
	for b, err := range r.BranchesOf(ctx, thread, id) {
		return b, err
	}
	return nil, nil
}

// BranchNames returns names of branches of a thread that begin with a prefix, in their order and
// no more of them than a limit.
func BranchNames(ctx context.Context, r Reader, thread structure.ThreadID, prefix string, limit int) (names []string, err error) {
	for b, err := range r.Branches(ctx, thread, prefix, "") {
		if err != nil {
			return nil, err
		}
		if len(names) == limit {
			break
		}
		names = append(names, b.Name)
	}
	return names, nil
}

// Context is a context as it is now.
type Context struct {
	structure.Context
	// Moved is the number of the commit that last moved its tip, and MovedAt that
	// commit's time.
	Moved   uint64
	MovedAt int64 // Unix milliseconds
}

// PathOptions say what Path reads in addition to spans.
type PathOptions struct {
	// Bodies asks for the blocks of the spans' usages.
	Bodies bool
	// Passing lets the engine use the memory of a step for the next, bodies and
	// metadata excepted: nothing else of it is kept by whoever asks.
	Passing bool
}

// Step is a span on a path. It must not be changed: engines may share it.
type Step struct {
	// Position is its place in the history, from 1.
	Position uint64
	// Commit is the number of the commit that added it.
	Commit uint64
	Span   *structure.Span
	// Blocks are the blocks of the span's usages in their order, when bodies were
	// asked for. A body that was cut is in Tree; one that was erased is in neither.
	Blocks []*structure.Block
}

// Stats counts the contents of a store.
type Stats struct {
	Threads, Contexts, Branches, Checkpoints uint64
	// Usages counts messages, documents and assets.
	Runs, Spans, Usages uint64
	Blocks, Chunks      uint64
	// UniqueBytes is the size of all bodies, each counted once.
	UniqueBytes uint64
	// LogicalBytes is the size of the bodies of all usages in all spans.
	LogicalBytes uint64
	// StoredBytes is the size of all files of the store. IndexBytes of them are its index, OtherBytes are neither
	// index nor journal: a search index, temporary files, bytes that were set aside.
	StoredBytes, IndexBytes, OtherBytes uint64
	// UnpackedBytes is the size of that part of the journal that packing has not compressed yet.
	UnpackedBytes uint64
}

// Counts returns the stats without the sizes on disk: two stores with the same commits have equal counts.
func (s Stats) Counts() Stats {
	s.StoredBytes, s.IndexBytes, s.OtherBytes, s.UnpackedBytes = 0, 0, 0, 0
	return s
}
