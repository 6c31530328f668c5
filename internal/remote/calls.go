package remote

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// target is what a call is made on: the latest state of an engine, or a snapshot of it.
type target struct {
	backend.Reader
	engine  backend.Engine // nil for a snapshot
	peer    *peer
	request *exchange
	// progress reports how far a call is, at most some times a second.
	progress func(done, total int64)
}

// call is a method with one answer: what both sides have to know of it.
type call[A, R any] struct {
	code   uint8
	name   string
	args   func(*wire, *A)
	result func(*wire, *R)
	do     func(context.Context, target, A) (R, error)
}

// sequence is a method that yields elements.
type sequence[A, E any] struct {
	code    uint8
	name    string
	args    func(*wire, *A)
	element func(*wire, *E)
	do      func(context.Context, target, A) iter.Seq2[E, error]
}

// The codes of methods. They are part of the protocol.
const (
	codeHead uint8 = iota + 1
	codeThread
	codeThreads
	codeThreadsEnding
	codeLastMessage
	codeListThreads
	codeContext
	codeContexts
	codeContextsAlone
	codeChildren
	codeBranch
	codeBranches
	codeBranchesOf
	codeBranchesBySource
	codeCheckpoint
	codeCheckpoints
	codeCheckpointsBySource
	codeFind
	codeRun
	codeAncestry
	codeRunsOf
	codeForks
	codeForksAt
	codeLast
	codePath
	codeDigest
	codeSpanSet
	codeAlternatives
	codeSummaries
	codeReflog
	codeValue
	codeValues
	codeValueHistory
	codeValueOwners
	codeHas
	codeBlocks
	codeChunks
	codeWhere
	codeStats
	codeSnapshot
	codeFeed
	codeWait
	codeApply
	codeOutcome
	codeForget
	codeUpload
	codeSync
	codeVerify
	codePack
	codeCollect
	codeCopy
	codeGuests
	// codeNext asks for more of a sequence.
	codeNext
)

// serving are the methods by their codes.
var serving = byCode(
	callHead, callThread, callThreads, callThreadsEnding, callLastMessage, callListThreads,
	callContext, callContexts, callContextsAlone, callChildren,
	callBranch, callBranches, callBranchesOf, callBranchesBySource,
	callCheckpoint, callCheckpoints, callCheckpointsBySource, callFind,
	callRun, callAncestry, callRunsOf, callForks, callForksAt, callLast,
	callPath, callDigest, callSpanSet, callAlternatives, callSummaries, callReflog,
	callValue, callValues, callValueHistory, callValueOwners,
	callHas, callBlocks, callChunks, callWhere, callStats,
	callSnapshot, callFeed, callWait, callApply, callOutcome, callForget, callUpload, callSync, callVerify,
	callPack, callCollect, callCopy, callGuests,
)

// Arguments of methods that have more than one.
type (
	inThread[T any] struct {
		thread structure.ThreadID
		is     T
	}
	pageOf[T any] struct {
		of    T
		after structure.ContextID
	}
	branchesArgs struct {
		thread        structure.ThreadID
		prefix, after string
	}
	sourceArgs struct {
		sourceID string
		thread   structure.ThreadID
		after    backend.Found
	}
	ancestryArgs struct {
		run   structure.RunID
		limit int
	}
	pathArgs struct {
		tip    structure.SpanRef
		window structure.Window
		bodies bool
	}
	valuesArgs struct {
		owner         structure.Owner
		prefix, after string
	}
	ownersArgs struct {
		scope structure.Scope
		after string
	}
)

func nothing(*wire, *struct{})                {}
func anID[T ~[16]byte](w *wire, v *T)         { id(w, "id", v) }
func threadNow(w *wire, t **structure.Thread) { record(w, t) }
func branch(w *wire, b **structure.Branch)    { record(w, b) }
func checkpoint(w *wire, c **structure.Checkpoint) {
	record(w, c)
}

func named(w *wire, a *inThread[string]) {
	id(w, "thread", &a.thread)
	w.Text("name", &a.is)
}

func inThreadID[T ~[16]byte](w *wire, a *inThread[T]) {
	id(w, "thread", &a.thread)
	id(w, "id", &a.is)
}

func page[T ~[16]byte](w *wire, a *pageOf[T]) {
	id(w, "of", &a.of)
	id(w, "after", &a.after)
}

func bySource(w *wire, a *sourceArgs) {
	w.Text("source id", &a.sourceID)
	id(w, "thread", &a.thread)
	found(w, &a.after)
}

var (
	callHead = call[struct{}, backend.Cursor]{
		codeHead, "Head", nothing, cursor,
		func(ctx context.Context, t target, _ struct{}) (backend.Cursor, error) { return t.Head(ctx) },
	}
	callThread = call[structure.ThreadID, *structure.Thread]{
		codeThread, "Thread", anID[structure.ThreadID], threadNow,
		func(ctx context.Context, t target, id structure.ThreadID) (*structure.Thread, error) {
			return t.Thread(ctx, id)
		},
	}
	callThreads = sequence[structure.ThreadID, *structure.Thread]{
		codeThreads, "Threads", anID[structure.ThreadID], threadNow,
		func(ctx context.Context, t target, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
			return t.Threads(ctx, after)
		},
	}
	callThreadsEnding = sequence[[backend.IDEnd]byte, *structure.Thread]{
		codeThreadsEnding, "ThreadsEnding", func(w *wire, end *[backend.IDEnd]byte) { w.fixed("end", end[:]) }, threadNow,
		func(ctx context.Context, t target, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
			return t.ThreadsEnding(ctx, end)
		},
	}
	callLastMessage = call[structure.Home, time.Time]{
		codeLastMessage, "LastMessage", home, func(w *wire, at *time.Time) { w.instant("time", at) },
		func(ctx context.Context, t target, h structure.Home) (time.Time, error) { return t.LastMessage(ctx, h) },
	}
	callListThreads = sequence[backend.ThreadQuery, backend.ThreadListing]{
		codeListThreads, "ListThreads", threadQuery, threadListing,
		func(ctx context.Context, t target, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
			return t.ListThreads(ctx, q)
		},
	}
	callContext = call[structure.ContextID, backend.Context]{
		codeContext, "Context", anID[structure.ContextID], contextNow,
		func(ctx context.Context, t target, id structure.ContextID) (backend.Context, error) {
			return t.Context(ctx, id)
		},
	}
	callContexts = sequence[pageOf[structure.ThreadID], backend.Context]{
		codeContexts, "Contexts", page[structure.ThreadID], contextNow,
		func(ctx context.Context, t target, a pageOf[structure.ThreadID]) iter.Seq2[backend.Context, error] {
			return t.Contexts(ctx, a.of, a.after)
		},
	}
	callContextsAlone = sequence[structure.ContextID, backend.Context]{
		codeContextsAlone, "ContextsAlone", anID[structure.ContextID], contextNow,
		func(ctx context.Context, t target, after structure.ContextID) iter.Seq2[backend.Context, error] {
			return t.ContextsAlone(ctx, after)
		},
	}
	callChildren = sequence[pageOf[structure.ContextID], backend.Context]{
		codeChildren, "Children", page[structure.ContextID], contextNow,
		func(ctx context.Context, t target, a pageOf[structure.ContextID]) iter.Seq2[backend.Context, error] {
			return t.Children(ctx, a.of, a.after)
		},
	}
	callBranch = call[inThread[string], *structure.Branch]{
		codeBranch, "Branch", named, branch,
		func(ctx context.Context, t target, a inThread[string]) (*structure.Branch, error) {
			return t.Branch(ctx, a.thread, a.is)
		},
	}
	callBranches = sequence[branchesArgs, *structure.Branch]{
		codeBranches, "Branches", func(w *wire, a *branchesArgs) {
			id(w, "thread", &a.thread)
			w.Text("prefix", &a.prefix)
			w.Text("after", &a.after)
		}, branch,
		func(ctx context.Context, t target, a branchesArgs) iter.Seq2[*structure.Branch, error] {
			return t.Branches(ctx, a.thread, a.prefix, a.after)
		},
	}
	callBranchesOf = sequence[inThread[structure.ContextID], *structure.Branch]{
		codeBranchesOf, "BranchesOf", inThreadID[structure.ContextID], branch,
		func(ctx context.Context, t target, a inThread[structure.ContextID]) iter.Seq2[*structure.Branch, error] {
			return t.BranchesOf(ctx, a.thread, a.is)
		},
	}
	callBranchesBySource = sequence[sourceArgs, *structure.Branch]{
		codeBranchesBySource, "BranchesBySource", bySource, branch,
		func(ctx context.Context, t target, a sourceArgs) iter.Seq2[*structure.Branch, error] {
			return t.BranchesBySource(ctx, a.sourceID, a.thread)
		},
	}
	callCheckpoint = call[inThread[string], *structure.Checkpoint]{
		codeCheckpoint, "Checkpoint", named, checkpoint,
		func(ctx context.Context, t target, a inThread[string]) (*structure.Checkpoint, error) {
			return t.Checkpoint(ctx, a.thread, a.is)
		},
	}
	callCheckpoints = sequence[inThread[string], *structure.Checkpoint]{
		codeCheckpoints, "Checkpoints", named, checkpoint,
		func(ctx context.Context, t target, a inThread[string]) iter.Seq2[*structure.Checkpoint, error] {
			return t.Checkpoints(ctx, a.thread, a.is)
		},
	}
	callCheckpointsBySource = sequence[sourceArgs, *structure.Checkpoint]{
		codeCheckpointsBySource, "CheckpointsBySource", bySource, checkpoint,
		func(ctx context.Context, t target, a sourceArgs) iter.Seq2[*structure.Checkpoint, error] {
			return t.CheckpointsBySource(ctx, a.sourceID, a.thread)
		},
	}
	callFind = sequence[sourceArgs, backend.Found]{
		codeFind, "Find", bySource, found,
		func(ctx context.Context, t target, a sourceArgs) iter.Seq2[backend.Found, error] {
			return t.Find(ctx, a.sourceID, a.thread, a.after)
		},
	}
	callRun = call[structure.RunID, structure.RunInfo]{
		codeRun, "Run", anID[structure.RunID], runInfo,
		func(ctx context.Context, t target, id structure.RunID) (structure.RunInfo, error) {
			return t.Run(ctx, id)
		},
	}
	callAncestry = call[ancestryArgs, []structure.RunInfo]{
		codeAncestry, "Ancestry", func(w *wire, a *ancestryArgs) {
			id(w, "run", &a.run)
			whole(w, "limit", &a.limit)
		},
		func(w *wire, all *[]structure.RunInfo) { list(w, "runs", all, 48, runInfo) },
		func(ctx context.Context, t target, a ancestryArgs) ([]structure.RunInfo, error) {
			return t.Ancestry(ctx, a.run, a.limit)
		},
	}
	callRunsOf = sequence[inThread[structure.RunID], structure.RunInfo]{
		codeRunsOf, "RunsOf", inThreadID[structure.RunID], runInfo,
		func(ctx context.Context, t target, a inThread[structure.RunID]) iter.Seq2[structure.RunInfo, error] {
			return t.RunsOf(ctx, a.thread, a.is)
		},
	}
	callForks = sequence[structure.RunID, structure.RunInfo]{
		codeForks, "Forks", anID[structure.RunID], runInfo,
		func(ctx context.Context, t target, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
			return t.Forks(ctx, run)
		},
	}
	callForksAt = sequence[structure.SpanRef, structure.RunInfo]{
		codeForksAt, "ForksAt", ref, runInfo,
		func(ctx context.Context, t target, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
			return t.ForksAt(ctx, at)
		},
	}
	callLast = call[structure.RunID, structure.SpanRef]{
		codeLast, "Last", anID[structure.RunID], ref,
		func(ctx context.Context, t target, run structure.RunID) (structure.SpanRef, error) {
			return t.Last(ctx, run)
		},
	}
	callPath = sequence[pathArgs, *backend.Step]{
		codePath, "Path", func(w *wire, a *pathArgs) {
			w.Ref("tip", &a.tip)
			window(w, &a.window)
			w.Flag("bodies", &a.bodies)
		}, step,
		func(ctx context.Context, t target, a pathArgs) iter.Seq2[*backend.Step, error] {
			return t.Path(ctx, a.tip, a.window, backend.PathOptions{Bodies: a.bodies, Passing: true})
		},
	}
	callDigest = call[structure.SpanRef, structure.Digest]{
		codeDigest, "Digest", ref, digest,
		func(ctx context.Context, t target, tip structure.SpanRef) (structure.Digest, error) {
			return t.Digest(ctx, tip)
		},
	}
	callSpanSet = call[structure.SpanSetID, *structure.SpanSet]{
		codeSpanSet, "SpanSet", anID[structure.SpanSetID], func(w *wire, s **structure.SpanSet) { record(w, s) },
		func(ctx context.Context, t target, id structure.SpanSetID) (*structure.SpanSet, error) {
			return t.SpanSet(ctx, id)
		},
	}
	callAlternatives = sequence[structure.SpanSetID, structure.SpanRef]{
		codeAlternatives, "Alternatives", anID[structure.SpanSetID], ref,
		func(ctx context.Context, t target, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
			return t.Alternatives(ctx, id)
		},
	}
	callSummaries = sequence[structure.ContextID, *structure.Summary]{
		codeSummaries, "Summaries", anID[structure.ContextID], func(w *wire, s **structure.Summary) { record(w, s) },
		func(ctx context.Context, t target, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
			return t.Summaries(ctx, id)
		},
	}
	callReflog = sequence[structure.ContextID, *structure.Reflog]{
		codeReflog, "Reflog", anID[structure.ContextID], func(w *wire, r **structure.Reflog) { record(w, r) },
		func(ctx context.Context, t target, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
			return t.Reflog(ctx, id)
		},
	}
	callValue = call[structure.ValueKey, backend.Value]{
		codeValue, "Value", valueKey, value,
		func(ctx context.Context, t target, key structure.ValueKey) (backend.Value, error) {
			return t.Value(ctx, key)
		},
	}
	callValues = sequence[valuesArgs, backend.Value]{
		codeValues, "Values", func(w *wire, a *valuesArgs) {
			owner(w, &a.owner)
			w.Text("prefix", &a.prefix)
			w.Text("after", &a.after)
		}, value,
		func(ctx context.Context, t target, a valuesArgs) iter.Seq2[backend.Value, error] {
			return t.Values(ctx, a.owner, a.prefix, a.after)
		},
	}
	callValueHistory = sequence[structure.ValueKey, backend.Value]{
		codeValueHistory, "ValueHistory", valueKey, value,
		func(ctx context.Context, t target, key structure.ValueKey) iter.Seq2[backend.Value, error] {
			return t.ValueHistory(ctx, key)
		},
	}
	callValueOwners = sequence[ownersArgs, string]{
		codeValueOwners, "ValueOwners", func(w *wire, a *ownersArgs) {
			whole(w, "scope", &a.scope)
			w.Text("after", &a.after)
		}, func(w *wire, name *string) { w.Text("name", name) },
		func(ctx context.Context, t target, a ownersArgs) iter.Seq2[string, error] {
			return t.ValueOwners(ctx, a.scope, a.after)
		},
	}
	callHas = call[[]content.ID, []bool]{
		codeHas, "Has", contentIDs, func(w *wire, all *[]bool) {
			list(w, "answers", all, 1, func(w *wire, is *bool) { w.Flag("answer", is) })
		},
		func(ctx context.Context, t target, ids []content.ID) ([]bool, error) { return t.Has(ctx, ids) },
	}
	callBlocks = call[[]content.ID, []*structure.Block]{
		codeBlocks, "Blocks", contentIDs, records[*structure.Block],
		func(ctx context.Context, t target, ids []content.ID) ([]*structure.Block, error) {
			return t.Blocks(ctx, ids)
		},
	}
	callChunks = call[[]content.Key, [][]byte]{
		codeChunks, "Chunks", func(w *wire, keys *[]content.Key) { list(w, "keys", keys, len(content.Key{}), chunkKey) },
		func(w *wire, all *[][]byte) {
			list(w, "chunks", all, 1, func(w *wire, b *[]byte) { w.data("chunk", b) })
		},
		func(ctx context.Context, t target, keys []content.Key) ([][]byte, error) { return t.Chunks(ctx, keys) },
	}
	callWhere = sequence[content.ID, structure.UsageID]{
		codeWhere, "Where", contentID, usageID,
		func(ctx context.Context, t target, id content.ID) iter.Seq2[structure.UsageID, error] {
			return t.Where(ctx, id)
		},
	}
	callStats = call[struct{}, backend.Stats]{
		codeStats, "Stats", nothing, stats,
		func(ctx context.Context, t target, _ struct{}) (backend.Stats, error) { return t.Stats(ctx) },
	}
)

func contentIDs(w *wire, ids *[]content.ID) { list(w, "ids", ids, len(content.ID{}), contentID) }
