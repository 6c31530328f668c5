package remote

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// walker writes or reads the fields of a T, depending on the direction of the wire.
type walker[T any] func(*wire, *T)

// unaryMethod is a method with one answer. The client writes arguments and reads the result. The server reads arguments,
// calls do and writes the result.
type unaryMethod[A, R any] struct {
	code   uint8
	name   string
	args   walker[A]
	result walker[R]
	do     func(receiver, context.Context, A) (R, error)
}

// sequence is a method that yields elements.
type sequence[A, E any] struct {
	code    uint8
	name    string
	args    walker[A]
	element walker[E]
	do      func(receiver, context.Context, A) iter.Seq2[E, error]
}

// pair holds two arguments of a method.
type pair[X, Y any] struct {
	x X
	y Y
}

func pairOf[X, Y any](x X, y Y) pair[X, Y] { return pair[X, Y]{x, y} }

func walkPair[X, Y any](x walker[X], y walker[Y]) walker[pair[X, Y]] {
	return func(w *wire, p *pair[X, Y]) {
		x(w, &p.x)
		y(w, &p.y)
	}
}

// call0, call1, call2, sequence1 and sequence2 declare a method with as many arguments, by the function of receiver that it calls.

func call0[R any](code uint8, name string, result walker[R], do func(receiver, context.Context) (R, error)) unaryMethod[struct{}, R] {
	return unaryMethod[struct{}, R]{code, name, nothing, result, func(t receiver, ctx context.Context, _ struct{}) (R, error) { return do(t, ctx) }}
}

func call1[A, R any](code uint8, name string, args walker[A], result walker[R], do func(receiver, context.Context, A) (R, error)) unaryMethod[A, R] {
	return unaryMethod[A, R]{code, name, args, result, do}
}

func call2[X, Y, R any](code uint8, name string, x walker[X], y walker[Y], result walker[R], do func(receiver, context.Context, X, Y) (R, error)) unaryMethod[pair[X, Y], R] {
	return call1(code, name, walkPair(x, y), result, func(t receiver, ctx context.Context, a pair[X, Y]) (R, error) { return do(t, ctx, a.x, a.y) })
}

func sequence1[A, E any](code uint8, name string, args walker[A], element walker[E], do func(receiver, context.Context, A) iter.Seq2[E, error]) sequence[A, E] {
	return sequence[A, E]{code, name, args, element, do}
}

func sequence2[X, Y, E any](code uint8, name string, x walker[X], y walker[Y], element walker[E], do func(receiver, context.Context, X, Y) iter.Seq2[E, error]) sequence[pair[X, Y], E] {
	return sequence1(code, name, walkPair(x, y), element, func(t receiver, ctx context.Context, a pair[X, Y]) iter.Seq2[E, error] { return do(t, ctx, a.x, a.y) })
}

// Arguments of methods that have three.
type (
	branchesArgs struct {
		thread        structure.ThreadID
		prefix, after string
	}
	findArgs struct {
		sourceID string
		thread   structure.ThreadID
		after    backend.Found
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
)

func nothing(*wire, *struct{})            {}
func anID[T ~[16]byte](w *wire, v *T)     { id(w, "id", v) }
func aText(w *wire, s *string)            { w.Text("text", s) }
func anInstant(w *wire, t *time.Time)     { w.instant("time", t) }
func anInteger[T integers](w *wire, n *T) { integer(w, "number", n) }

func contentIDs(w *wire, ids *[]content.ID) { list(w, "ids", ids, len(content.ID{}), contentID) }

func walkBranches(w *wire, a *branchesArgs) {
	id(w, "thread", &a.thread)
	w.Text("prefix", &a.prefix)
	w.Text("after", &a.after)
}

func walkFind(w *wire, a *findArgs) {
	w.Text("source id", &a.sourceID)
	id(w, "thread", &a.thread)
	found(w, &a.after)
}

func walkPath(w *wire, a *pathArgs) {
	w.Ref("tip", &a.tip)
	window(w, &a.window)
	w.Flag("bodies", &a.bodies)
}

func walkValues(w *wire, a *valuesArgs) {
	owner(w, &a.owner)
	w.Text("prefix", &a.prefix)
	w.Text("after", &a.after)
}

// The methods of backend.Reader.
var (
	callHead          = call0(codeHead, "Head", cursor, receiver.Head)
	callThread        = call1(codeThread, "Thread", anID, record, receiver.Thread)
	callThreads       = sequence1(codeThreads, "Threads", anID, record, receiver.Threads)
	callThreadsEnding = sequence1(codeThreadsEnding, "ThreadsEnding",
		func(w *wire, end *[backend.IDEnd]byte) { w.fixed("end", end[:]) }, record, receiver.ThreadsEnding)
	callLastMessage   = call1(codeLastMessage, "LastMessage", home, anInstant, receiver.LastMessage)
	callListThreads   = sequence1(codeListThreads, "ListThreads", threadQuery, threadListing, receiver.ListThreads)
	callContext       = call1(codeContext, "Context", anID, contextState, receiver.Context)
	callRemnant       = call1(codeRemnant, "Remnant", anID, record, receiver.Remnant)
	callContexts      = sequence2(codeContexts, "Contexts", anID, anID, contextState, receiver.Contexts)
	callContextsAlone = sequence1(codeContextsAlone, "ContextsAlone", anID, contextState, receiver.ContextsAlone)
	callChildren      = sequence2(codeChildren, "Children", anID, anID, contextState, receiver.Children)
	callBranch        = call2(codeBranch, "Branch", anID, aText, record, receiver.Branch)
	callBranches      = sequence1(codeBranches, "Branches", walkBranches, record,
		func(t receiver, ctx context.Context, a branchesArgs) iter.Seq2[*structure.Branch, error] {
			return t.Branches(ctx, a.thread, a.prefix, a.after)
		})
	callBranchesOf          = sequence2(codeBranchesOf, "BranchesOf", anID, anID, record, receiver.BranchesOf)
	callBranchesBySource    = sequence2(codeBranchesBySource, "BranchesBySource", aText, anID, record, receiver.BranchesBySource)
	callCheckpoint          = call2(codeCheckpoint, "Checkpoint", anID, aText, record, receiver.Checkpoint)
	callCheckpoints         = sequence2(codeCheckpoints, "Checkpoints", anID, aText, record, receiver.Checkpoints)
	callCheckpointsBySource = sequence2(codeCheckpointsBySource, "CheckpointsBySource", aText, anID, record, receiver.CheckpointsBySource)
	callFind                = sequence1(codeFind, "Find", walkFind, found,
		func(t receiver, ctx context.Context, a findArgs) iter.Seq2[backend.Found, error] {
			return t.Find(ctx, a.sourceID, a.thread, a.after)
		})
	callRun      = call1(codeRun, "Run", anID, runInfo, receiver.Run)
	callAncestry = call2(codeAncestry, "Ancestry", anID, anInteger, runInfos, receiver.Ancestry)
	callRunsOf   = sequence2(codeRunsOf, "RunsOf", anID, anID, runInfo, receiver.RunsOf)
	callForks    = sequence1(codeForks, "Forks", anID, runInfo, receiver.Forks)
	callForksAt  = sequence1(codeForksAt, "ForksAt", ref, runInfo, receiver.ForksAt)
	callLast     = call1(codeLast, "Last", anID, ref, receiver.Last)
	callPath     = sequence1(codePath, "Path", walkPath, step,
		func(t receiver, ctx context.Context, a pathArgs) iter.Seq2[*backend.Step, error] {
			return t.Path(ctx, a.tip, a.window, backend.PathOptions{Bodies: a.bodies, Passing: true})
		})
	callDigest       = call1(codeDigest, "Digest", ref, digest, receiver.Digest)
	callSpanSet      = call1(codeSpanSet, "SpanSet", anID, record, receiver.SpanSet)
	callAlternatives = sequence1(codeAlternatives, "Alternatives", anID, ref, receiver.Alternatives)
	callSummaries    = sequence1(codeSummaries, "Summaries", anID, record, receiver.Summaries)
	callReflog       = sequence1(codeReflog, "Reflog", anID, record, receiver.Reflog)
	callValue        = call1(codeValue, "Value", valueKey, value, receiver.Value)
	callValues       = sequence1(codeValues, "Values", walkValues, value,
		func(t receiver, ctx context.Context, a valuesArgs) iter.Seq2[backend.Value, error] {
			return t.Values(ctx, a.owner, a.prefix, a.after)
		})
	callValueHistory = sequence1(codeValueHistory, "ValueHistory", valueKey, value, receiver.ValueHistory)
	callValueOwners  = sequence2(codeValueOwners, "ValueOwners", anInteger, aText, aText, receiver.ValueOwners)
	callHas          = call1(codeHas, "Has", contentIDs, flags, receiver.Has)
	callBlocks       = call1(codeBlocks, "Blocks", contentIDs, records, inParts(receiver.Blocks, func(b *structure.Block) int { return len(b.Body) }))
	callChunks       = call1(codeChunks, "Chunks", chunkKeys, bodies, inParts(receiver.Chunks, func(b []byte) int { return len(b) }))
	callWhere        = sequence1(codeWhere, "Where", contentID, usageID, receiver.Where)
	callStats        = call0(codeStats, "Stats", stats, receiver.Stats)
)

// partKeys is the number of bodies that are read at once.
const partKeys = 256

// inParts returns a method that reads bodies in parts. It returns ErrTooLarge when they exceed the size of a message.
func inParts[K, V any](read func(receiver, context.Context, []K) ([]V, error), size func(V) int) func(receiver, context.Context, []K) ([]V, error) {
	return func(t receiver, ctx context.Context, keys []K) (all []V, err error) {
		bytes := 0
		for part := range slices.Chunk(keys, partKeys) {
			got, err := read(t, ctx, part)
			if err != nil {
				return nil, err
			}
			for _, v := range got {
				bytes += size(v)
			}
			if bytes > maxMessage {
				return nil, fmt.Errorf("bodies of more than %d bytes: %w", maxMessage, backend.ErrTooLarge)
			}
			all = append(all, got...)
		}
		return all, nil
	}
}

func byCode(all ...method) map[uint8]method {
	table := make(map[uint8]method, len(all))
	for _, m := range all {
		table[m.number()] = m
	}
	return table
}

// method is what a server needs to know of a method.
type method interface {
	number() uint8
	// serve reads arguments and writes the answer.
	serve(x *exchange, in, out *wire) error
}
