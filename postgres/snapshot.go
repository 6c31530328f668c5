package postgres

import (
	"context"
	"iter"
	"maps"
	"sync/atomic"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// snapshot is a state of the store. It holds nothing on the server.
type snapshot struct {
	reads
	engine *Engine
	cache  *cache
	state  state
	first  *stateReader                // for the first read of a sequence: what was read with the state
	ahead  atomic.Pointer[stateReader] // what was read for later reads; it no longer changes
}

// newSnapshot returns a snapshot of the state of a reader.
func newSnapshot(e *Engine, t *stateReader) *snapshot {
	s := &snapshot{engine: e, cache: t.cache, state: t.state}
	s.reads.source = s
	return s
}

// Close implements backend.Snapshot.
func (s *snapshot) Close() error { return nil }

// withReader implements stateSource.
func (s *snapshot) withReader(ctx context.Context, n need, fn func(*stateReader) error) error {
	t, err := s.reader(ctx, n)
	if err != nil {
		return err
	}
	return fn(t)
}

// reader returns a reader of the snapshot, with what is needed.
func (s *snapshot) reader(ctx context.Context, n need) (*stateReader, error) {
	switch {
	case s.engine.closed.Load():
		return nil, asExpired(errClosed)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	t := s.first
	if t == nil { // as in snapshots of callers, which many goroutines read
		t = s.engine.readerOf(ctx, s.cache, s.state)
		if a := s.ahead.Load(); a != nil {
			t.fetched.older, t.fetched.lasts = a.fetched.recent, maps.Clone(a.fetched.lasts)
		}
	} else {
		s.first = nil
	}
	inner := t.fetch
	t.fetch = func(ctx context.Context, n need) (fetchResult, error) {
		f, err := inner(ctx, n)
		return f, asExpired(err)
	}
	return t, t.prefetch(ctx, n.Need, t.lookStored) // also what is unfolded, which shows whether the state can be read
}

// readerOf returns a reader of a state.
func (e *Engine) readerOf(ctx context.Context, c *cache, st state) *stateReader {
	return newStateReader(ctx, c, e.log.identity, st, func(ctx context.Context, n need) (fetchResult, error) {
		if err := e.begin(); err != nil {
			return fetchResult{}, err
		}
		defer e.going.Done()
		f, err := e.log.at(ctx, st.head, n)
		return f, e.ended(err)
	})
}

// sequence calls a method of a view of the snapshot that returns a sequence.
func sequence[T any](ctx context.Context, s *snapshot, n need, fn func(*read.View) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		t, err := s.reader(ctx, n)
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

// Stats implements backend.Reader.
func (s *snapshot) Stats(ctx context.Context) (backend.Stats, error) {
	stats := keys.CountersOf(s.state.counts).Stats()
	if s.engine.closed.Load() {
		return stats, asExpired(errClosed)
	}
	err := s.engine.sizes(ctx, &stats)
	return stats, asExpired(s.engine.ended(err))
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

// Path implements backend.Reader.
func (s *snapshot) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return sequence(ctx, s, pathNeed(tip, w), func(v *read.View) iter.Seq2[*backend.Step, error] { return v.Path(ctx, tip, w, o) })
}

// Steps implements backend.StepReader.
func (s *snapshot) Steps(ctx context.Context, refs []structure.SpanRef) iter.Seq2[*backend.Step, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*backend.Step, error] { return v.Steps(ctx, refs) })
}

// Threads implements backend.Reader.
func (s *snapshot) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Thread, error] { return v.Threads(ctx, after) })
}

// ThreadsEnding implements backend.Reader.
func (s *snapshot) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Thread, error] { return v.ThreadsEnding(ctx, end) })
}

// ListThreads implements backend.Reader.
func (s *snapshot) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.ThreadListing, error] { return v.ListThreads(ctx, q) })
}

// Contexts implements backend.Reader.
func (s *snapshot) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Context, error] { return v.Contexts(ctx, thread, after) })
}

// ContextsAlone implements backend.Reader.
func (s *snapshot) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Context, error] { return v.ContextsAlone(ctx, after) })
}

// Children implements backend.Reader.
func (s *snapshot) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Context, error] { return v.Children(ctx, parent, after) })
}

// Branches implements backend.Reader.
func (s *snapshot) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Branch, error] { return v.Branches(ctx, thread, prefix, after) })
}

// BranchesOf implements backend.Reader.
func (s *snapshot) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Branch, error] { return v.BranchesOf(ctx, thread, id) })
}

// Checkpoints implements backend.Reader.
func (s *snapshot) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Checkpoint, error] { return v.Checkpoints(ctx, thread, after) })
}

// Forks implements backend.Reader.
func (s *snapshot) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.Forks(ctx, run) })
}

// AllRuns implements backend.RunLister.
func (s *snapshot) AllRuns(ctx context.Context) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.RunRecords(ctx) })
}

// ForksAt implements backend.Reader.
func (s *snapshot) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.ForksAt(ctx, at) })
}

// Alternatives implements backend.Reader.
func (s *snapshot) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.SpanRef, error] { return v.Alternatives(ctx, id) })
}

// Summaries implements backend.Reader.
func (s *snapshot) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Summary, error] { return v.Summaries(ctx, id) })
}

// Reflog implements backend.Reader.
func (s *snapshot) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Reflog, error] { return v.Reflog(ctx, id) })
}

// Where implements backend.Reader.
func (s *snapshot) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.UsageID, error] { return v.Where(ctx, id) })
}

// BranchesBySource implements backend.Reader.
func (s *snapshot) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Branch, error] {
		return v.BranchesBySource(ctx, sourceID, thread)
	})
}

// CheckpointsBySource implements backend.Reader.
func (s *snapshot) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[*structure.Checkpoint, error] {
		return v.CheckpointsBySource(ctx, sourceID, thread)
	})
}

// Find implements backend.Reader.
func (s *snapshot) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Found, error] { return v.Find(ctx, sourceID, thread, after) })
}

// RunsOf implements backend.Reader.
func (s *snapshot) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[structure.RunInfo, error] { return v.RunsOf(ctx, thread, after) })
}

// Values implements backend.Reader.
func (s *snapshot) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Value, error] { return v.Values(ctx, owner, prefix, after) })
}

// ValueHistory implements backend.Reader.
func (s *snapshot) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[backend.Value, error] { return v.ValueHistory(ctx, key) })
}

// ValueOwners implements backend.Reader.
func (s *snapshot) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return sequence(ctx, s, need{}, func(v *read.View) iter.Seq2[string, error] { return v.ValueOwners(ctx, scope, after) })
}
