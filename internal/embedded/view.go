package embedded

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// view answers reads from the index as of one commit. The engine's own reads
// make one for each call.
type view struct {
	engine *Engine
	index  *catalog
	files  *journal.View // nil for the journal as it is at each read
}

// now returns a view of the latest state, to be released. What it reads stays as
// it is, even where the journal is rewritten meanwhile.
func (e *Engine) now() view {
	for {
		files := e.journal.View()
		v := view{engine: e, files: files, index: e.catalog(e.index.Snapshot(), files)}
		if v.files.Current() {
			return v
		}
		v.release()
	}
}

func (v view) release() {
	v.index.Close()
	v.files.Release()
}

func (v view) newReader() *journal.Reader {
	if v.files == nil {
		return v.engine.journal.NewReader()
	}
	return v.files.NewReader()
}

// snapshot is a view that its user closes.
type snapshot struct{ reads }

// Snapshot implements backend.Engine.
func (e *Engine) Snapshot(context.Context) (backend.Snapshot, error) {
	h, err := e.hold()
	if err != nil {
		return nil, err
	}
	return &snapshot{reads{engine: e, fixed: h}}, nil
}

// Close implements backend.Snapshot.
func (s *snapshot) Close() error {
	s.fixed.release(errReleased)
	return nil
}

// Head implements backend.Reader.
func (v view) Head(context.Context) (backend.Cursor, error) { return cursorOf(v.index.State()), nil }

// record returns the record of a kind under a key.
func record[R structure.Record](state kv, k []byte, kind structure.Kind, id string) (R, error) {
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

// readings yields what is read from entries. An error ends it.
func readings[R any](entries iter.Seq2[index.Entry, error], read func(index.Entry) (R, error)) iter.Seq2[R, error] {
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

// records yields the records under a prefix whose keys are greater than after.
func records[R structure.Record](ctx context.Context, v view, prefix, after []byte, kind structure.Kind) iter.Seq2[R, error] {
	return readings(v.entriesAfter(ctx, prefix, after), func(e index.Entry) (R, error) {
		return keys.Record[R](kind, e.Value, "")
	})
}

// entries yields what is under a prefix until the context ends.
func (v view) entries(ctx context.Context, prefix []byte) iter.Seq2[index.Entry, error] {
	return v.entriesAfter(ctx, prefix, nil)
}

// entriesAfter yields what is under a prefix and has a greater key than after, until the
// context ends.
func (v view) entriesAfter(ctx context.Context, prefix, after []byte) iter.Seq2[index.Entry, error] {
	from := prefix
	if bytes.Compare(after, prefix) >= 0 {
		from = append(bytes.Clone(after), 0) // the least key that is greater
	}
	return func(yield func(index.Entry, error) bool) {
		for e, err := range v.index.Scan(from, keys.PrefixEnd(prefix)) {
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
func (v view) Thread(_ context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return record[*structure.Thread](v.index, keys.Of(keys.TableThread, id[:]), structure.KindThread, id.String())
}

// Threads implements backend.Reader.
func (v view) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return records[*structure.Thread](ctx, v, keys.Of(keys.TableThread), keys.Of(keys.TableThread, after[:]), structure.KindThread)
}

// ThreadsEnding implements backend.Reader.
func (v view) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	prefix := keys.Of(keys.TableThreadEnd, end[:])
	return readings(v.entries(ctx, prefix), func(e index.Entry) (*structure.Thread, error) {
		var id structure.ThreadID
		copy(id[copy(id[:], e.Key[len(prefix):]):], end[:])
		return v.Thread(ctx, id)
	})
}

// Context implements backend.Reader.
func (v view) Context(_ context.Context, id structure.ContextID) (backend.Context, error) {
	return readContext(v.index, id)
}

// Contexts implements backend.Reader.
func (v view) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	if thread.IsZero() {
		return v.contexts(ctx, keys.Of(keys.TableContext), after)
	}
	return v.contexts(ctx, keys.Of(keys.TableMember, thread[:]), after)
}

// ContextsAlone implements backend.Reader.
func (v view) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return v.contexts(ctx, keys.Of(keys.TableMember, make([]byte, len(structure.ThreadID{}))), after)
}

// Children implements backend.Reader.
func (v view) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return v.contexts(ctx, keys.Of(keys.TableChild, parent[:]), after)
}

// contexts yields the contexts whose ids end the keys under a prefix, after one of them.
func (v view) contexts(ctx context.Context, prefix []byte, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return readings(v.entriesAfter(ctx, prefix, slices.Concat(prefix, after[:])), func(e index.Entry) (backend.Context, error) {
		return readContext(v.index, structure.ContextID(e.Key[len(prefix):]))
	})
}

// Branch implements backend.Reader.
func (v view) Branch(_ context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return record[*structure.Branch](v.index, keys.Branch(thread, name), structure.KindBranch, fmt.Sprintf("%q", name))
}

// Branches implements backend.Reader.
func (v view) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return records[*structure.Branch](ctx, v, keys.Branch(thread, prefix), keys.Branch(thread, after), structure.KindBranch)
}

// BranchesOf implements backend.Reader.
func (v view) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	prefix := keys.Named(thread, id, "")
	return readings(v.entries(ctx, prefix), func(e index.Entry) (*structure.Branch, error) {
		return v.Branch(ctx, thread, string(e.Key[len(prefix):]))
	})
}

// Checkpoint implements backend.Reader.
func (v view) Checkpoint(_ context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return record[*structure.Checkpoint](v.index, keys.Checkpoint(thread, name), structure.KindCheckpoint, fmt.Sprintf("%q", name))
}

// Checkpoints implements backend.Reader.
func (v view) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return records[*structure.Checkpoint](ctx, v, keys.Of(keys.TableCheckpoint, thread[:]), keys.Of(keys.TableCheckpoint, thread[:], []byte(after)), structure.KindCheckpoint)
}

// SpanSet implements backend.Reader.
func (v view) SpanSet(_ context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return record[*structure.SpanSet](v.index, keys.Of(keys.TableSpanSet, id[:]), structure.KindSpanSet, id.String())
}

// Alternatives implements backend.Reader.
func (v view) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return readings(v.entries(ctx, keys.Of(keys.TableAlternative, id[:])), func(e index.Entry) (structure.SpanRef, error) {
		values := keys.Varints{Rest: e.Value}
		return keys.ReadRef(&values), values.Err()
	})
}

// Summaries implements backend.Reader.
func (v view) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return records[*structure.Summary](ctx, v, keys.Of(keys.TableSummary, id[:]), nil, structure.KindSummary)
}

// Reflog implements backend.Reader.
func (v view) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return records[*structure.Reflog](ctx, v, keys.Of(keys.TableReflog, id[:]), nil, structure.KindReflog)
}

// Run implements backend.Reader.
func (v view) Run(_ context.Context, id structure.RunID) (structure.RunInfo, error) {
	return readRunInfo(v.index, id)
}

// Ancestry implements backend.Reader.
func (v view) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	var runs []structure.RunInfo
	for range limit {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		run, err := readRunInfo(v.index, id)
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
func (v view) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return v.runsUnder(ctx, keys.Of(keys.TableFork, run[:]), nil)
}

// ForksAt implements backend.Reader.
func (v view) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return v.runsUnder(ctx, keys.Of(keys.TableFork, at.Run[:], keys.Uint64(at.Seq)), nil)
}

// runsUnder yields the runs whose ids end the keys that are under a prefix and greater than after.
func (v view) runsUnder(ctx context.Context, prefix, after []byte) iter.Seq2[structure.RunInfo, error] {
	return readings(v.entriesAfter(ctx, prefix, after), func(e index.Entry) (structure.RunInfo, error) {
		return readRunInfo(v.index, structure.RunID(e.Key[len(e.Key)-len(structure.RunID{}):]))
	})
}

// Last implements backend.Reader.
func (v view) Last(_ context.Context, run structure.RunID) (structure.SpanRef, error) {
	last, err := v.index.lastSpan(run)
	if err == nil && last.IsZero() {
		_, err = readRunInfo(v.index, run) // empty, or not there at all
	}
	return last, err
}

// Has implements backend.Reader.
func (v view) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	out := make([]bool, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		_, ok, err := v.index.Get(keys.Block(id))
		if err == nil && ok {
			ok, err = v.notErased(id)
		}
		if err != nil {
			return nil, err
		}
		out[i] = ok
	}
	return out, nil
}

func (v view) notErased(id content.ID) (bool, error) {
	if !v.anyErased() {
		return true, nil
	}
	_, erased, err := v.index.Get(keys.Of(keys.TableErased, id[:]))
	return !erased, err
}

// Stats implements backend.Reader.
func (v view) Stats(context.Context) (backend.Stats, error) {
	s := keys.CountersOf(v.index.State().Counts).Stats()
	ofIndex, ofOthers, err := v.engine.fileSizes()
	if err != nil {
		return backend.Stats{}, fmt.Errorf("stats: %w", err)
	}
	s.IndexBytes, s.OtherBytes = uint64(ofIndex), uint64(ofOthers)
	for _, segment := range v.engine.journal.Segments() {
		s.StoredBytes += uint64(segment.Bytes)
		if !segment.Packed {
			s.UnpackedBytes += uint64(segment.Bytes)
		}
	}
	s.StoredBytes += s.IndexBytes + s.OtherBytes
	return s, nil
}
