// Package backend is the port between lineage and a storage engine: everything that a store
// needs from an engine.
//
// An engine stores commits in order and answers reads about them. It enforces the invariants
// listed at [Engine.Apply]; package backendtest checks them. The port does not assume one
// process, local files or a clock: an engine may be a network round trip away, so reads are
// batches and sequences.
package backend

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Durability determines when a commit is acknowledged.
type Durability uint8

const (
	// DefaultDurability is the durability that the engine was opened with.
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
	// Tips are tips that contexts must have just before the commit. If one differs, nothing is
	// applied and a *TipError is returned.
	Tips []Expect
	// Threads are states that threads must have just before the commit. If one differs,
	// nothing is applied and the error matches ErrConflict, or ErrExists if it should not
	// exist.
	Threads []ExpectThread
	// Contexts are states that contexts must have just before the commit. The errors are those of
	// Threads.
	Contexts []ExpectContext
	// Once, if not nil, identifies the commit as a request of a session: it is applied once,
	// however often it is sent.
	Once *Once
	// Branches and Checkpoints are states that names must have just before the commit. The errors
	// are those of Threads.
	Branches    []ExpectBranch
	Checkpoints []ExpectCheckpoint
	// Values are states that values must have just before the commit. The errors are those of
	// Threads.
	Values []ExpectValue
	// Sources are spans that source ids of usages must find just before the commit. If one
	// differs, nothing is applied and the error matches ErrExists if it should find none, or
	// ErrConflict.
	Sources []ExpectSource
}

// ExpectThread is the state that a thread must have: nil if it must not exist.
type ExpectThread struct {
	ID  structure.ThreadID
	Was *structure.Thread
}

// ExpectContext is the state that a context must have, including its tip: nil if it must not
// exist.
type ExpectContext struct {
	ID  structure.ContextID
	Was *structure.Context
}

// Expect is the tip that a context must have.
type Expect struct {
	Context structure.ContextID
	Tip     structure.SpanRef
}

// Receipt is the result of a commit.
type Receipt struct {
	// Cursor is the number and id of the commit.
	Cursor
	// Repeated is set if the same request of a session was applied before. The cursor is that of the earlier commit,
	// and the other fields are zero.
	Repeated bool
	// Known lists the blocks that the store already had. They were not stored again and keep
	// the description that was recorded first.
	Known []content.ID
	// KnownChunks is the number of chunks that the store already had.
	KnownChunks int
}

// View reads a store: its latest state, snapshots, and commits. All methods are safe for
// concurrent use.
type View interface {
	// Reader reads the latest state: each call sees every commit that was acknowledged before
	// it.
	Reader

	// Snapshot returns the state after the latest commit, for any number of reads. The caller
	// must close it. It does not wait for writers.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Feed yields the commits after a cursor, in order, up to the last one at the time of the
	// call. Block bodies are included, except those erased since, as are the embeddings of
	// summaries. Records deleted by a Collector are left out, possibly all of a commit. A
	// cursor of another history is ErrDiverged.
	Feed(ctx context.Context, after Cursor) iter.Seq2[*structure.Commit, error]

	// Wait returns the cursor of the last commit as soon as there is a commit after the given
	// one. A cursor of another history is ErrDiverged.
	Wait(ctx context.Context, after Cursor) (Cursor, error)
}

// Engine stores commits. All methods are safe for concurrent use.
type Engine interface {
	View

	// Apply adds a commit atomically, and returns when it has the requested durability. It
	// sets the commit's number, one more than the last, and its time if it has none; it does
	// not retain the commit's memory. Content that the store has is not stored again; a usage
	// that takes its type or origin from such a block of the same commit gets those of that
	// block. A block without its bytes is allowed for content that the same commit erases: it
	// records the description of content erased in another store, and is ErrExists if the
	// store has the content.
	//
	// A context that is deleted, by itself or with its thread, stays as a remnant as long as a
	// context or another remnant has it as its parent. A context can be forked from a remnant
	// only by a commit that states the remnant before it. A remnant is stated with a parent that
	// exists, the one it has if it exists, and with a child (ErrNotFound, ErrExists, ErrInvalid).
	// A context with the id of a remnant and the same parent takes its place: the forks inherit
	// its overrides then, so a caller that creates such a context must mean the deleted one.
	//
	// A value of a thread or context is deleted with it. A value of a thread must state the
	// thread's incarnation (ErrConflict).
	//
	// A run may name a thread that does not exist, or another incarnation of one: its messages
	// are then not found by source ids.
	//
	// These invariants hold after every commit, or the commit is refused with the given error:
	// a span is the next of its run and its run exists (ErrConflict); a new run, context or
	// span set, and a branch, checkpoint or thread under a new id or name, does not exist with
	// another identity (ErrExists); everything a record refers to exists: parents, tips,
	// threads, contexts, content (ErrNotFound); every record has what its kind requires
	// (ErrInvalid).
	//
	// A commit that was canceled while waiting for durability may have been applied: the error
	// matches ErrUncertain.
	//
	// A commit with Options.Once that was applied before is not applied again, whatever its
	// other options: its receipt is Repeated, and is returned when the commit has the
	// durability requested now. If the engine no longer knows whether it was applied, it
	// applies nothing and returns ErrUncertain. A refused request may be sent again.
	Apply(ctx context.Context, c *structure.Commit, o Options) (Receipt, error)

	// Outcome returns the receipt of a request that was applied, ErrNotFound if it was not,
	// and ErrUncertain if the engine no longer knows. It waits neither for attempts in
	// progress nor for durability.
	Outcome(ctx context.Context, o Once) (Receipt, error)

	// Forget ends a session. Later requests of it are ErrUncertain.
	Forget(ctx context.Context, session [16]byte) error

	// Upload stores chunks of a block that a later commit adds, and returns the number of
	// chunks that the store did not have. They need not be durable before that commit is. The
	// engine may use numbered commits for this. Unused chunks are deleted by a Collector after
	// some time. See [Cut].
	Upload(ctx context.Context, chunks []*structure.Chunk) (added int, err error)

	// Recent returns a reader that may be some commits behind and reads from the memory of this process. A caller
	// that bases a commit on it states what it read in Options. If that is outdated or something is not found, the
	// caller reads from the engine itself. An engine whose reads are equally cheap returns itself.
	Recent() Reader

	// Sync makes all commits so far durable.
	Sync(ctx context.Context) error

	// Verify checks the store and yields its findings. An error means that the check itself
	// failed.
	Verify(ctx context.Context, o VerifyOptions) iter.Seq2[Finding, error]

	// Close closes the store. Acknowledged commits are kept. It waits for calls, but not for
	// open snapshots or for callers that process an element of a sequence.
	Close() error
}

// Snapshot is the state of a store after one commit. It is safe for concurrent use and does
// not change until closed. After the engine is closed, its reads and running sequences return
// ErrExpired.
type Snapshot interface {
	Reader
	// Close releases the snapshot. It may be called twice.
	Close() error
}

// IDEnd is the number of bytes at the end of an id that people use to name it.
const IDEnd = 4

// Reader reads a state. The caller owns the results unless stated otherwise. Something that
// does not exist is ErrNotFound for single reads, and an empty sequence for lists. Lists take
// the id or name after which they continue, whether it exists or not; the zero value is the
// start.
type Reader interface {
	SourceReader
	ValueReader
	ThreadReader

	// Head returns the cursor of the last commit, or the zero cursor in an empty store.
	Head(ctx context.Context) (Cursor, error)

	Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error)
	// Threads yields all threads in the order of their ids.
	Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error]
	// ThreadsEnding yields the threads whose ids end with the given bytes, in the order of
	// their ids. It reads no other thread.
	ThreadsEnding(ctx context.Context, end [IDEnd]byte) iter.Seq2[*structure.Thread, error]

	// Context returns a context with its current tip. The memory of its overrides and metadata
	// is shared with other callers and must not be changed.
	Context(ctx context.Context, id structure.ContextID) (Context, error)
	// Remnant returns the remnant of a deleted context from which others were forked. For all other reads the context
	// does not exist. The memory is shared, as for Context.
	Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error)
	// Contexts yields the contexts of a thread in the order of their ids, or all contexts for
	// the zero id.
	Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[Context, error]
	// ContextsAlone yields the contexts in no thread, in the order of their ids.
	ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[Context, error]
	// Children yields the contexts with the given parent, in the order of their ids.
	Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[Context, error]

	Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error)
	// Branches yields the branches of a thread whose names start with a prefix, in the order
	// of their names. It reads no other branch.
	Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error]
	// BranchesOf yields the branches of a thread that are the given context, usually one or
	// none. It reads no other branch.
	BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error]

	Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error)
	// Checkpoints yields a thread's checkpoints in the order of their names.
	Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error]

	Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error)
	// Ancestry returns a run and its ancestors, nearest first, up to the first of its history
	// but at most limit. To continue, ask for the parent run of the last one. See [Runs].
	Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error)
	// Forks yields the runs that start after a span of the given run, ordered by that span's
	// place; the zero id yields runs that start a history.
	Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error]
	// ForksAt yields the runs that start directly after a span. It reads no other run.
	ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error]
	// Last returns the last span of a run, or the zero ref if it has none.
	Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error)

	// Path yields the window of the history that ends at tip, oldest first. An unknown tip is
	// ErrNotFound.
	Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o PathOptions) iter.Seq2[*Step, error]
	// Digest returns the digest of the history that ends at tip.
	Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error)

	SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error)
	// Alternatives yields the spans of a span set in the order in which they were added.
	Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error]

	// Summaries yields the summaries of a context, oldest first, or those of all contexts for the
	// zero id, in the order of their contexts. Those whose text is erased have no embedding.
	Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error]
	// Reflog yields the moves of a context's tip other than forward, oldest first.
	Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error]

	// Has reports for each id whether the block's bytes are stored.
	Has(ctx context.Context, ids []content.ID) ([]bool, error)
	// Blocks returns the blocks with these ids, in order. A chunked body is returned as its
	// Tree, to be read with Chunks. A missing block is ErrNotFound.
	Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error)
	// Chunks returns the bytes of chunks, in the order of their keys, which they match. A
	// missing chunk is ErrNotFound. The caller limits the number of chunks per call.
	Chunks(ctx context.Context, keys []content.Key) ([][]byte, error)
	// Where yields all usages of a block, oldest first.
	Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error]
	// Stats returns the statistics of the store.
	Stats(ctx context.Context) (Stats, error)
}

// BranchOf returns the branch of a thread that is the given context: the first by name if
// there are several, nil if there is none.
func BranchOf(ctx context.Context, r Reader, thread structure.ThreadID, id structure.ContextID) (*structure.Branch, error) {
	for b, err := range r.BranchesOf(ctx, thread, id) {
		return b, err
	}
	return nil, nil
}

// BranchesByCreation returns the branches of a thread, oldest first.
func BranchesByCreation(ctx context.Context, r Reader, thread structure.ThreadID) ([]*structure.Branch, error) {
	return sorted(r.Branches(ctx, thread, "", ""), (*structure.Branch).Compare)
}

// CheckpointsByCreation returns the checkpoints of a thread, newest first.
func CheckpointsByCreation(ctx context.Context, r Reader, thread structure.ThreadID) ([]*structure.Checkpoint, error) {
	return sorted(r.Checkpoints(ctx, thread, ""), func(a, b *structure.Checkpoint) int { return b.Compare(a) })
}

func sorted[T any](elements iter.Seq2[T, error], compare func(a, b T) int) (all []T, err error) {
	for element, err := range elements {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	slices.SortFunc(all, compare)
	return all, nil
}

// BranchNames returns names of branches of a thread that start with a prefix, in order, up to a limit.
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

// FreeBranchName returns the index of the first name in a list that no branch of a thread has. It returns the length
// of the list if none is free.
func FreeBranchName(ctx context.Context, r Reader, thread structure.ThreadID, names []string) (int, error) {
	for i, name := range names {
		if _, err := r.Branch(ctx, thread, name); errors.Is(err, ErrNotFound) {
			return i, nil
		} else if err != nil {
			return 0, err
		}
	}
	return len(names), nil
}

// Context is the current state of a context.
type Context struct {
	structure.Context
	// Moved is the commit that last moved its tip, and MovedAt that commit's time.
	Moved   uint64
	MovedAt int64 // Unix milliseconds
}

// PathOptions configure Path.
type PathOptions struct {
	// Bodies requests the blocks of the spans' usages.
	Bodies bool
	// Passing lets the engine reuse the memory of a step for the next one, except for bodies and metadata.
	Passing bool
}

// Step is a span on a path. It must not be changed: engines may share it.
type Step struct {
	// Position is the position of the span in the history, from 1.
	Position uint64
	// Commit is the commit that added the span.
	Commit uint64
	Span   *structure.Span
	// Blocks are the blocks of the span's usages in order, if bodies were requested. A chunked
	// body is in Tree; an erased body is in neither.
	Blocks []*structure.Block
}

// Stats are counts and sizes of a store.
type Stats struct {
	Threads     uint64 `json:"threads"`
	Contexts    uint64 `json:"contexts"`
	Branches    uint64 `json:"branches"`
	Checkpoints uint64 `json:"checkpoints"`
	// Usages counts messages, documents and assets.
	Usages uint64 `json:"messages"`
	Spans  uint64 `json:"spans"`
	Runs   uint64 `json:"runs"`
	Blocks uint64 `json:"blocks"`
	Chunks uint64 `json:"chunks"`
	// LogicalBytes is the size of the bodies of all usages in all spans, UniqueBytes that of all
	// bodies, each counted once.
	LogicalBytes uint64 `json:"logical_bytes"`
	UniqueBytes  uint64 `json:"unique_bytes"`
	// StoredBytes is the size of all files of the store. IndexBytes is the size of its index,
	// and OtherBytes of files outside index and journal: a search index, temporary files,
	// bytes that were set aside.
	StoredBytes uint64 `json:"stored_bytes"`
	IndexBytes  uint64 `json:"index_bytes"`
	OtherBytes  uint64 `json:"other_bytes"`
	// UnpackedBytes is the size of the journal without packs.
	UnpackedBytes uint64 `json:"unpacked_bytes"`
}

// Counts returns the stats without the sizes on disk: two stores with the same commits have equal counts.
func (s Stats) Counts() Stats {
	s.StoredBytes, s.IndexBytes, s.OtherBytes, s.UnpackedBytes = 0, 0, 0, 0
	return s
}
