package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Reads are one round trip or a few. The first one of a call reads the state and what the call certainly needs; the others
// read as of that state. A snapshot is a state: it holds nothing on the server.

// latest calls a function with a table of the latest state. If that goes away meanwhile, it is called again.
func latest[T any](ctx context.Context, e *Engine, n need, fn func(*table) (T, error)) (result T, err error) {
	for range mostRetries {
		var t *table
		if t, err = e.latest(ctx, n); err != nil {
			return result, err
		}
		if result, err = fn(t); !errors.Is(err, backend.ErrExpired) {
			break
		}
	}
	return result, err
}

// latest returns a table of the latest state, with what is needed.
func (e *Engine) latest(ctx context.Context, n need) (*table, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.going.Done()
	c := e.cache.Load()
	st, f, there, err := e.log.latest(ctx, c.last(), n)
	if errors.Is(err, errUnfilled) { // a program of an earlier version wrote
		if err = e.fill(ctx); err == nil {
			c = e.cache.Load()
			st, f, there, err = e.log.latest(ctx, c.last(), n)
		}
	}
	if err != nil {
		return nil, e.ended(err)
	}
	if there {
		c.advance(st)
	} else { // of another epoch, or another history
		was := c
		c = newCache(st, e.o.CacheBytes)
		e.cache.CompareAndSwap(was, c)
	}
	t := e.table(ctx, c, st)
	return t, t.take(n, f)
}

// table returns a table of a state.
func (e *Engine) table(ctx context.Context, c *cache, st state) *table {
	return newTable(ctx, c, e.log.identity, st, func(ctx context.Context, n need) (found, error) {
		if err := e.begin(); err != nil {
			return found{}, err
		}
		defer e.going.Done()
		f, err := e.log.at(ctx, st.head, n)
		return f, e.ended(err)
	})
}

// ended returns errClosed for the error of a call that Close ended.
func (e *Engine) ended(err error) error {
	if err != nil && e.closed.Load() {
		return errClosed
	}
	return err
}

// snapshot is a state of the store.
type snapshot struct {
	engine *Engine
	cache  *cache
	state  state
	first  *table                // for the first read of a sequence: what was read with the state
	ahead  atomic.Pointer[table] // what was read for later reads; it no longer changes
}

// Snapshot implements backend.Engine.
func (e *Engine) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	t, err := e.latest(ctx, need{})
	if err != nil {
		return nil, err
	}
	return &snapshot{engine: e, cache: t.cache, state: t.state}, nil
}

// Close implements backend.Snapshot.
func (s *snapshot) Close() error { return nil }

// at returns a table of the snapshot, with what is needed.
func (s *snapshot) at(ctx context.Context, n need) (*table, error) {
	switch {
	case s.engine.closed.Load():
		return nil, asExpired(errClosed)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	t := s.first
	if t == nil { // as in snapshots of callers, which many goroutines read
		t = s.engine.table(ctx, s.cache, s.state)
		if a := s.ahead.Load(); a != nil {
			t.older.values, t.older.ranges = a.values, a.ranges
		}
	} else {
		s.first = nil
	}
	inner := t.fetch
	t.fetch = func(ctx context.Context, n need) (found, error) {
		f, err := inner(ctx, n)
		return f, asExpired(err)
	}
	return t, t.prefetch(ctx, n.Need, t.lookStored) // also what is unfolded, which shows whether the state can be read
}

// asExpired returns ErrExpired for ErrClosed.
func asExpired(err error) error {
	if errors.Is(err, backend.ErrClosed) {
		return fmt.Errorf("%w: %w", backend.ErrExpired, err)
	}
	return err
}

// readSnapshot calls a method of a view of the snapshot.
func readSnapshot[T any](ctx context.Context, s *snapshot, n need, fn func(*read.View) (T, error)) (result T, err error) {
	t, err := s.at(ctx, n)
	if err != nil {
		return result, err
	}
	return fn(t.view())
}

// listSnapshot calls a method of a view of the snapshot that returns a sequence.
func listSnapshot[T any](ctx context.Context, s *snapshot, n need, fn func(*read.View) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		t, err := s.at(ctx, n)
		if err != nil {
			yield(none, err)
			return
		}
		for v, err := range fn(t.view()) {
			if err == nil && s.engine.closed.Load() {
				v, err = none, asExpired(errClosed)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// readers implements backend.Reader for the latest state. When the state of a sequence goes away, the sequence continues
// in the next one.
type readers struct {
	resume.Sequences
	engine *Engine
}

func newReaders(e *Engine) *readers {
	r := &readers{engine: e}
	r.Sequences.Open = r.open
	return r
}

// open takes a snapshot for a sequence.
func (r *readers) open(ctx context.Context) (resume.Opened[backend.Reader], error) {
	s, err := r.engine.Snapshot(ctx)
	return resume.Opened[backend.Reader]{Reader: s, Interrupted: r.engine.interrupted}, err
}

// interrupted reports whether a sequence ended because its state went away, and not because the engine was closed.
func (e *Engine) interrupted(err error) bool {
	return errors.Is(err, backend.ErrExpired) && !e.closed.Load()
}

// recentReaders reads contexts as they were after the last commit of this process that changed them. Everything else it reads
// from the server.
type recentReaders struct{ *readers }

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return recentReaders{e.readers} }

// Context implements backend.Reader.
func (r recentReaders) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if c, ok := r.engine.cache.Load().contexts.Get(id); ok && !c.ID.IsZero() && !r.engine.closed.Load() {
		return c, nil
	}
	return r.readers.Context(ctx, id)
}

func keysNeed(ks ...[]byte) need { return need{Need: read.Need{Keys: ks}} }

func blocksNeed(ids []content.ID) (n need) {
	for _, id := range ids {
		n.Keys = append(n.Keys, keys.Block(id))
	}
	return n
}

func chunksNeed(all []content.Key) (n need) {
	for _, k := range all {
		n.Keys = append(n.Keys, keys.Chunk(k))
	}
	return n
}

// spansNeeded limits the spans that are read with the first round trip of a path.
const spansNeeded = 256

// pathNeed returns what reading a path always needs: its last span and run, and the spans of a short window.
func pathNeed(tip structure.SpanRef, w structure.Window) need {
	if tip.IsZero() {
		return need{}
	}
	n := keysNeed(keys.Span(tip), keys.Of(keys.TableRun, tip.Run[:]))
	last := w.Last
	if last == 0 || last > tip.Seq {
		last = tip.Seq
	}
	if last <= spansNeeded {
		first := structure.SpanRef{Run: tip.Run, Seq: tip.Seq - last + 1}
		n.Ranges = []read.Range{{From: keys.Span(first), To: keys.PrefixEnd(keys.Span(tip))}}
	}
	return n
}

// Path implements backend.Reader. The state and what the path certainly needs are one round trip.
func (r *readers) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	of := resume.Sequences{Open: func(ctx context.Context) (resume.Opened[backend.Reader], error) {
		t, err := r.engine.latest(ctx, pathNeed(tip, w))
		if err != nil {
			return resume.Opened[backend.Reader]{}, err
		}
		return resume.Opened[backend.Reader]{Reader: &snapshot{engine: r.engine, cache: t.cache, state: t.state, first: t}, Interrupted: r.engine.interrupted}, nil
	}}
	return of.Path(ctx, tip, w, o)
}

// Path implements backend.Reader.
func (s *snapshot) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return listSnapshot(ctx, s, pathNeed(tip, w), func(v *read.View) iter.Seq2[*backend.Step, error] { return v.Path(ctx, tip, w, o) })
}

// Stats implements backend.Reader.
func (s *snapshot) Stats(ctx context.Context) (backend.Stats, error) {
	stats := keys.CountersOf(s.state.counts).Stats()
	if s.engine.closed.Load() {
		return stats, asExpired(errClosed)
	}
	err := s.engine.sizes(ctx, &stats)
	return stats, asExpired(s.engine.ended(err))
}

// Stats implements backend.Reader.
func (r *readers) Stats(ctx context.Context) (backend.Stats, error) {
	s, err := r.engine.Snapshot(ctx)
	if err != nil {
		return backend.Stats{}, err
	}
	return s.Stats(ctx)
}

// Head implements backend.Reader.
func (r *readers) Head(ctx context.Context) (backend.Cursor, error) {
	return latest(ctx, r.engine, need{}, func(t *table) (backend.Cursor, error) { return t.view().Head(ctx) })
}

// Head implements backend.Reader.
func (s *snapshot) Head(ctx context.Context) (backend.Cursor, error) {
	return readSnapshot(ctx, s, need{}, func(v *read.View) (backend.Cursor, error) { return v.Head(ctx) })
}

// Context implements backend.Reader.
func (r *readers) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return latest(ctx, r.engine, keysNeed(keys.Of(keys.TableContext, id[:]), keys.Of(keys.TableTip, id[:])), func(t *table) (backend.Context, error) { return t.view().Context(ctx, id) })
}

// Context implements backend.Reader.
func (s *snapshot) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Of(keys.TableContext, id[:]), keys.Of(keys.TableTip, id[:])), func(v *read.View) (backend.Context, error) { return v.Context(ctx, id) })
}

// Remnant implements backend.Reader.
func (r *readers) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return latest(ctx, r.engine, keysNeed(keys.Of(keys.TableRemnant, id[:])), func(t *table) (*structure.Remnant, error) { return t.view().Remnant(ctx, id) })
}

// Remnant implements backend.Reader.
func (s *snapshot) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Of(keys.TableRemnant, id[:])), func(v *read.View) (*structure.Remnant, error) { return v.Remnant(ctx, id) })
}

// Thread implements backend.Reader.
func (r *readers) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return latest(ctx, r.engine, keysNeed(keys.Of(keys.TableThread, id[:])), func(t *table) (*structure.Thread, error) { return t.view().Thread(ctx, id) })
}

// Thread implements backend.Reader.
func (s *snapshot) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Of(keys.TableThread, id[:])), func(v *read.View) (*structure.Thread, error) { return v.Thread(ctx, id) })
}

// LastMessage implements backend.Reader.
func (r *readers) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return latest(ctx, r.engine, keysNeed(keys.AppendMessage(nil, home)), func(t *table) (time.Time, error) { return t.view().LastMessage(ctx, home) })
}

// LastMessage implements backend.Reader.
func (s *snapshot) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return readSnapshot(ctx, s, keysNeed(keys.AppendMessage(nil, home)), func(v *read.View) (time.Time, error) { return v.LastMessage(ctx, home) })
}

// Branch implements backend.Reader.
func (r *readers) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return latest(ctx, r.engine, keysNeed(keys.Branch(thread, name)), func(t *table) (*structure.Branch, error) { return t.view().Branch(ctx, thread, name) })
}

// Branch implements backend.Reader.
func (s *snapshot) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Branch(thread, name)), func(v *read.View) (*structure.Branch, error) { return v.Branch(ctx, thread, name) })
}

// Checkpoint implements backend.Reader.
func (r *readers) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return latest(ctx, r.engine, keysNeed(keys.Checkpoint(thread, name)), func(t *table) (*structure.Checkpoint, error) { return t.view().Checkpoint(ctx, thread, name) })
}

// Checkpoint implements backend.Reader.
func (s *snapshot) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Checkpoint(thread, name)), func(v *read.View) (*structure.Checkpoint, error) { return v.Checkpoint(ctx, thread, name) })
}

// Run implements backend.Reader.
func (r *readers) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return latest(ctx, r.engine, keysNeed(keys.Of(keys.TableRun, id[:])), func(t *table) (structure.RunInfo, error) { return t.view().Run(ctx, id) })
}

// Run implements backend.Reader.
func (s *snapshot) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Of(keys.TableRun, id[:])), func(v *read.View) (structure.RunInfo, error) { return v.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (r *readers) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return latest(ctx, r.engine, keysNeed(keys.Of(keys.TableRun, id[:])), func(t *table) ([]structure.RunInfo, error) { return t.view().Ancestry(ctx, id, limit) })
}

// Ancestry implements backend.Reader.
func (s *snapshot) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Of(keys.TableRun, id[:])), func(v *read.View) ([]structure.RunInfo, error) { return v.Ancestry(ctx, id, limit) })
}

// Last implements backend.Reader.
func (r *readers) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return latest(ctx, r.engine, need{Need: read.Need{Keys: [][]byte{keys.Of(keys.TableRun, run[:])}, Lasts: []read.Range{read.Under(keys.Of(keys.TableSpan, run[:]))}}}, func(t *table) (structure.SpanRef, error) { return t.view().Last(ctx, run) })
}

// Last implements backend.Reader.
func (s *snapshot) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return readSnapshot(ctx, s, need{Need: read.Need{Keys: [][]byte{keys.Of(keys.TableRun, run[:])}, Lasts: []read.Range{read.Under(keys.Of(keys.TableSpan, run[:]))}}}, func(v *read.View) (structure.SpanRef, error) { return v.Last(ctx, run) })
}

// Digest implements backend.Reader.
func (r *readers) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return latest(ctx, r.engine, keysNeed(keys.Span(tip)), func(t *table) (structure.Digest, error) { return t.view().Digest(ctx, tip) })
}

// Digest implements backend.Reader.
func (s *snapshot) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Span(tip)), func(v *read.View) (structure.Digest, error) { return v.Digest(ctx, tip) })
}

// Value implements backend.Reader.
func (r *readers) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return latest(ctx, r.engine, need{}, func(t *table) (backend.Value, error) { return t.view().Value(ctx, key) })
}

// Value implements backend.Reader.
func (s *snapshot) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return readSnapshot(ctx, s, need{}, func(v *read.View) (backend.Value, error) { return v.Value(ctx, key) })
}

// SpanSet implements backend.Reader.
func (r *readers) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return latest(ctx, r.engine, keysNeed(keys.Of(keys.TableSpanSet, id[:])), func(t *table) (*structure.SpanSet, error) { return t.view().SpanSet(ctx, id) })
}

// SpanSet implements backend.Reader.
func (s *snapshot) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return readSnapshot(ctx, s, keysNeed(keys.Of(keys.TableSpanSet, id[:])), func(v *read.View) (*structure.SpanSet, error) { return v.SpanSet(ctx, id) })
}

// Has implements backend.Reader.
func (r *readers) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return latest(ctx, r.engine, blocksNeed(ids), func(t *table) ([]bool, error) { return t.view().Has(ctx, ids) })
}

// Has implements backend.Reader.
func (s *snapshot) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return readSnapshot(ctx, s, blocksNeed(ids), func(v *read.View) ([]bool, error) { return v.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (r *readers) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return latest(ctx, r.engine, blocksNeed(ids), func(t *table) ([]*structure.Block, error) { return t.view().Blocks(ctx, ids) })
}

// Blocks implements backend.Reader.
func (s *snapshot) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return readSnapshot(ctx, s, blocksNeed(ids), func(v *read.View) ([]*structure.Block, error) { return v.Blocks(ctx, ids) })
}

// Chunks implements backend.Reader.
func (r *readers) Chunks(ctx context.Context, all []content.Key) ([][]byte, error) {
	return latest(ctx, r.engine, chunksNeed(all), func(t *table) ([][]byte, error) { return t.view().Chunks(ctx, all) })
}

// Chunks implements backend.Reader.
func (s *snapshot) Chunks(ctx context.Context, all []content.Key) ([][]byte, error) {
	return readSnapshot(ctx, s, chunksNeed(all), func(v *read.View) ([][]byte, error) { return v.Chunks(ctx, all) })
}

// Threads implements backend.Reader.
func (s *snapshot) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Thread, error] { return v.Threads(ctx, after) })
}

// ThreadsEnding implements backend.Reader.
func (s *snapshot) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Thread, error] { return v.ThreadsEnding(ctx, end) })
}

// ListThreads implements backend.Reader.
func (s *snapshot) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.ThreadListing, error] { return v.ListThreads(ctx, q) })
}

// Contexts implements backend.Reader.
func (s *snapshot) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Context, error] { return v.Contexts(ctx, thread, after) })
}

// ContextsAlone implements backend.Reader.
func (s *snapshot) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Context, error] { return v.ContextsAlone(ctx, after) })
}

// Children implements backend.Reader.
func (s *snapshot) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Context, error] { return v.Children(ctx, parent, after) })
}

// Branches implements backend.Reader.
func (s *snapshot) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Branch, error] { return v.Branches(ctx, thread, prefix, after) })
}

// BranchesOf implements backend.Reader.
func (s *snapshot) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Branch, error] { return v.BranchesOf(ctx, thread, id) })
}

// Checkpoints implements backend.Reader.
func (s *snapshot) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Checkpoint, error] { return v.Checkpoints(ctx, thread, after) })
}

// Forks implements backend.Reader.
func (s *snapshot) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.Forks(ctx, run) })
}

// ForksAt implements backend.Reader.
func (s *snapshot) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.ForksAt(ctx, at) })
}

// Alternatives implements backend.Reader.
func (s *snapshot) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.SpanRef, error] { return v.Alternatives(ctx, id) })
}

// Summaries implements backend.Reader.
func (s *snapshot) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Summary, error] { return v.Summaries(ctx, id) })
}

// Reflog implements backend.Reader.
func (s *snapshot) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Reflog, error] { return v.Reflog(ctx, id) })
}

// Where implements backend.Reader.
func (s *snapshot) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.UsageID, error] { return v.Where(ctx, id) })
}

// BranchesBySource implements backend.Reader.
func (s *snapshot) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Branch, error] {
		return v.BranchesBySource(ctx, sourceID, thread)
	})
}

// CheckpointsBySource implements backend.Reader.
func (s *snapshot) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Checkpoint, error] {
		return v.CheckpointsBySource(ctx, sourceID, thread)
	})
}

// Find implements backend.Reader.
func (s *snapshot) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Found, error] { return v.Find(ctx, sourceID, thread, after) })
}

// RunsOf implements backend.Reader.
func (s *snapshot) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.RunsOf(ctx, thread, after) })
}

// Values implements backend.Reader.
func (s *snapshot) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Value, error] { return v.Values(ctx, owner, prefix, after) })
}

// ValueHistory implements backend.Reader.
func (s *snapshot) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Value, error] { return v.ValueHistory(ctx, key) })
}

// ValueOwners implements backend.Reader.
func (s *snapshot) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return listSnapshot(ctx, s, need{}, func(v *read.View) iter.Seq2[string, error] { return v.ValueOwners(ctx, scope, after) })
}
