// Package read implements the reads of the port on an ordered map of the entries of package keys
// and the commits that these refer to. It is independent of where they are stored.
package read

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// View answers reads as of one commit. It is safe for concurrent use if its parts are.
type View struct {
	Index   Index
	Commits Commits
	// Packs has the entries that the index leaves out. It is nil if the index has all.
	Packs Packs
	// Ahead prefetches what will be read. It is nil if that does not help. In the entries of an engine with a
	// prefetcher each span has its digest: see entries.Builder.Digests.
	Ahead Prefetcher
	// Frames and Digests are caches shared by views. Each may be nil.
	Frames  *FrameCache
	Digests Digests
}

// Close releases the index.
func (v *View) Close() { v.Index.Close() }

// LastSpan returns the last span of a run, or the zero ref if there is none.
func (v *View) LastSpan(run structure.RunID) (structure.SpanRef, error) {
	if v.Packs != nil {
		return v.Packs.LastSpan(run)
	}
	prefix := keys.Of(keys.TableSpan, run[:])
	e, ok, err := v.Index.Last(prefix, keys.PrefixEnd(prefix))
	if err != nil || !ok {
		return structure.SpanRef{}, err
	}
	return structure.SpanRef{Run: run, Seq: keys.ReadUint64(e.Key[len(prefix):])}, nil
}

// Record returns the record of a kind under a key.
func Record[R structure.Record](state Getter, k []byte, kind structure.Kind, id string) (R, error) {
	var none R
	b, ok, err := state.Get(k)
	if err != nil {
		return none, err
	}
	if !ok {
		return none, &backend.SubjectError{Subject: kind.String(), ID: id, Err: backend.ErrNotFound}
	}
	return keys.Record[R](kind, b, id)
}

// Readings yields the results of reading entries. The first error ends the sequence.
func Readings[R any](entries iter.Seq2[index.Entry, error], read func(index.Entry) (R, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for e, err := range entries {
			var r R
			if err == nil {
				r, err = read(e)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Records yields the records under a prefix whose keys are greater than after.
func Records[R structure.Record](ctx context.Context, v *View, prefix, after []byte, kind structure.Kind) iter.Seq2[R, error] {
	return Readings(v.entriesAfter(ctx, prefix, after), func(e index.Entry) (R, error) {
		return keys.Record[R](kind, e.Value, "")
	})
}

// Entries yields the entries under a prefix until the context ends.
func (v *View) Entries(ctx context.Context, prefix []byte) iter.Seq2[index.Entry, error] {
	return v.entriesAfter(ctx, prefix, nil)
}

// entriesAfter yields the entries under a prefix with keys greater than after, until the context
// ends.
func (v *View) entriesAfter(ctx context.Context, prefix, after []byte) iter.Seq2[index.Entry, error] {
	from := prefix
	if bytes.Compare(after, prefix) >= 0 {
		from = append(bytes.Clone(after), 0) // the least greater key
	}
	return func(yield func(index.Entry, error) bool) {
		for e, err := range v.Index.Scan(from, keys.PrefixEnd(prefix)) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Thread implements backend.Reader.
func (v *View) Thread(_ context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return Record[*structure.Thread](v.Index, keys.Of(keys.TableThread, id[:]), structure.KindThread, id.String())
}

// Threads implements backend.Reader.
func (v *View) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return Records[*structure.Thread](ctx, v, keys.Of(keys.TableThread), keys.Of(keys.TableThread, after[:]), structure.KindThread)
}

// ThreadsEnding implements backend.Reader.
func (v *View) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	prefix := keys.Of(keys.TableThreadByEnd, end[:])
	return Readings(v.Entries(ctx, prefix), func(e index.Entry) (*structure.Thread, error) {
		var id structure.ThreadID
		copy(id[copy(id[:], e.Key[len(prefix):]):], end[:])
		return v.Thread(ctx, id)
	})
}

// Context implements backend.Reader.
func (v *View) Context(_ context.Context, id structure.ContextID) (backend.Context, error) {
	return Context(v.Index, id)
}

// Remnant implements backend.Reader.
func (v *View) Remnant(_ context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return Record[*structure.Remnant](v.Index, keys.Of(keys.TableRemnant, id[:]), structure.KindRemnant, id.String())
}

// Contexts implements backend.Reader.
func (v *View) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	if thread.IsZero() {
		return v.contexts(ctx, keys.Of(keys.TableContext), after)
	}
	return v.contexts(ctx, keys.Of(keys.TableContextOfThread, thread[:]), after)
}

// ContextsAlone implements backend.Reader.
func (v *View) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return v.contexts(ctx, keys.Of(keys.TableContextOfThread, make([]byte, len(structure.ThreadID{}))), after)
}

// Children implements backend.Reader.
func (v *View) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return v.contexts(ctx, keys.Of(keys.TableChildOfContext, parent[:]), after)
}

// contexts yields the contexts whose ids end the keys under a prefix, after the given id. Remnants
// are left out.
func (v *View) contexts(ctx context.Context, prefix []byte, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return func(yield func(backend.Context, error) bool) {
		for e, err := range v.entriesAfter(ctx, prefix, slices.Concat(prefix, after[:])) {
			if err == nil && prefix[0] == keys.TableChildOfContext && len(e.Value) > 0 {
				continue
			}
			var c backend.Context
			switch {
			case err != nil:
			case prefix[0] == keys.TableContext:
				c, err = ContextOf(v.Index, structure.ContextID(e.Key[len(prefix):]), e.Value)
			default:
				c, err = Context(v.Index, structure.ContextID(e.Key[len(prefix):]))
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// Branch implements backend.Reader.
func (v *View) Branch(_ context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return Record[*structure.Branch](v.Index, keys.Branch(thread, name), structure.KindBranch, fmt.Sprintf("%q", name))
}

// Branches implements backend.Reader.
func (v *View) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return Records[*structure.Branch](ctx, v, keys.Branch(thread, prefix), keys.Branch(thread, after), structure.KindBranch)
}

// BranchesOf implements backend.Reader.
func (v *View) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	prefix := keys.Named(thread, id, "")
	return Readings(v.Entries(ctx, prefix), func(e index.Entry) (*structure.Branch, error) {
		return v.Branch(ctx, thread, string(e.Key[len(prefix):]))
	})
}

// Checkpoint implements backend.Reader.
func (v *View) Checkpoint(_ context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return Record[*structure.Checkpoint](v.Index, keys.Checkpoint(thread, name), structure.KindCheckpoint, fmt.Sprintf("%q", name))
}

// Checkpoints implements backend.Reader.
func (v *View) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return Records[*structure.Checkpoint](ctx, v, keys.Of(keys.TableCheckpoint, thread[:]), keys.Of(keys.TableCheckpoint, thread[:], []byte(after)), structure.KindCheckpoint)
}

// SpanSet implements backend.Reader.
func (v *View) SpanSet(_ context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return Record[*structure.SpanSet](v.Index, keys.Of(keys.TableSpanSet, id[:]), structure.KindSpanSet, id.String())
}

// Alternatives implements backend.Reader.
func (v *View) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return Readings(v.Entries(ctx, keys.Of(keys.TableAlternative, id[:])), func(e index.Entry) (structure.SpanRef, error) {
		values := keys.ReadVarints(e.Value)
		return keys.ReadRef(&values), values.Err()
	})
}

// Summaries implements backend.Reader.
func (v *View) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	prefix := keys.Of(keys.TableSummary)
	if !id.IsZero() {
		prefix = keys.Of(keys.TableSummary, id[:])
	}
	return Readings(v.Entries(ctx, prefix), func(e index.Entry) (*structure.Summary, error) {
		s, err := keys.Record[*structure.Summary](structure.KindSummary, e.Value, "")
		if err != nil || s.Embedding == nil {
			return s, err
		}
		if ok, err := v.NotErased(s.Content); ok || err != nil {
			return s, err
		}
		return s.WithoutEmbedding(), nil
	})
}

// Reflog implements backend.Reader.
func (v *View) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return Records[*structure.Reflog](ctx, v, keys.Of(keys.TableReflog, id[:]), nil, structure.KindReflog)
}

// Run implements backend.Reader.
func (v *View) Run(_ context.Context, id structure.RunID) (structure.RunInfo, error) {
	return Run(v.Index, id)
}

// Ancestry implements backend.Reader.
func (v *View) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	var runs []structure.RunInfo
	for range limit {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		run, err := Run(v.Index, id)
		if err != nil {
			return nil, err
		}
		if n := len(runs); n > 0 && run.Depth >= runs[n-1].Depth {
			return nil, fmt.Errorf("%w: run %v of depth %d after %v", structure.ErrBrokenAncestry, runs[n-1].ID, runs[n-1].Depth, runs[n-1].Parent)
		}
		if runs = append(runs, run); run.Parent.IsZero() {
			break
		}
		id = run.Parent.Run
	}
	return runs, nil
}

// Forks implements backend.Reader.
func (v *View) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return v.runsUnder(ctx, keys.Of(keys.TableForkOfRun, run[:]), nil)
}

// RunRecords yields the runs whose records are in the index: all of them, where there are no packs.
func (v *View) RunRecords(ctx context.Context) iter.Seq2[structure.RunInfo, error] {
	return Readings(v.Entries(ctx, keys.Of(keys.TableRun)), func(e index.Entry) (structure.RunInfo, error) {
		var id structure.RunID
		if copy(id[:], e.Key[1:]) != len(e.Key)-1 || len(e.Key) != 1+len(id) {
			return structure.RunInfo{}, &backend.CorruptError{File: v.Index.Name(), What: "the key of a run"}
		}
		return keys.ReadRun(id, e.Value)
	})
}

// ForksAt implements backend.Reader.
func (v *View) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return v.runsUnder(ctx, keys.Of(keys.TableForkOfRun, at.Run[:], keys.Uint64(at.Seq)), nil)
}

// runsUnder yields the runs whose ids end the keys under a prefix and after a key.
func (v *View) runsUnder(ctx context.Context, prefix, after []byte) iter.Seq2[structure.RunInfo, error] {
	return Readings(v.entriesAfter(ctx, prefix, after), func(e index.Entry) (structure.RunInfo, error) {
		return Run(v.Index, structure.RunID(e.Key[len(e.Key)-len(structure.RunID{}):]))
	})
}

// Last implements backend.Reader.
func (v *View) Last(_ context.Context, run structure.RunID) (structure.SpanRef, error) {
	last, err := v.LastSpan(run)
	if err == nil && last.IsZero() {
		_, err = Run(v.Index, run) // the run is empty or missing
	}
	return last, err
}

// NotErased reports whether content is not erased.
func (v *View) NotErased(id content.ID) (bool, error) {
	if !v.anyErased() {
		return true, nil
	}
	_, erased, err := v.Index.Get(keys.Of(keys.TableErased, id[:]))
	return !erased, err
}

func (v *View) anyErased() bool { return keys.CountersOf(v.Index.State().Counts).Erased > 0 }
