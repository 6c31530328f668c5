package backendtest

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Counting wraps an engine and counts the calls, so that tests can measure the
// cost of an operation without a clock.
type Counting struct {
	countingReader
	engine backend.Engine
	work   atomic.Int64
}

// NewCounting returns an engine that counts the calls to e. Closing it closes e.
func NewCounting(e backend.Engine) *Counting {
	c := &Counting{engine: e}
	c.countingReader = countingReader{e, &c.work}
	return c
}

// Cost returns the cost of work: one for each call to the engine, each element that a
// sequence yields and each record of a commit.
func (c *Counting) Cost(work func()) int64 {
	before := c.work.Load()
	work()
	return c.work.Load() - before
}

// Apply implements backend.Engine.
func (c *Counting) Apply(ctx context.Context, commit *structure.Commit, o backend.Options) (backend.Receipt, error) {
	c.work.Add(1 + int64(len(commit.Records)))
	return c.engine.Apply(ctx, commit, o)
}

// Outcome implements backend.Engine.
func (c *Counting) Outcome(ctx context.Context, o backend.Once) (backend.Receipt, error) {
	c.work.Add(1)
	return c.engine.Outcome(ctx, o)
}

// Forget implements backend.Engine.
func (c *Counting) Forget(ctx context.Context, session [16]byte) error {
	c.work.Add(1)
	return c.engine.Forget(ctx, session)
}

// Upload implements backend.Engine.
func (c *Counting) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	c.work.Add(1 + int64(len(chunks)))
	return c.engine.Upload(ctx, chunks)
}

// Recent implements backend.Engine.
func (c *Counting) Recent() backend.Reader {
	recent := c.engine.Recent()
	if recent == backend.Reader(c.engine) {
		return c
	}
	return countingReader{recent, &c.work}
}

// Snapshot implements backend.Engine.
func (c *Counting) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := c.engine.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &countingSnapshot{countingReader{s, &c.work}, s}, nil
}

// Feed implements backend.Engine.
func (c *Counting) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	return counted(&c.work, c.engine.Feed(ctx, after))
}

// Wait implements backend.Engine.
func (c *Counting) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	return c.engine.Wait(ctx, after)
}

// Sync implements backend.Engine.
func (c *Counting) Sync(ctx context.Context) error { return c.engine.Sync(ctx) }

// Verify implements backend.Engine.
func (c *Counting) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return c.engine.Verify(ctx, o)
}

// Close implements backend.Engine.
func (c *Counting) Close() error { return c.engine.Close() }

type countingSnapshot struct {
	countingReader
	snapshot backend.Snapshot
}

func (s *countingSnapshot) Close() error { return s.snapshot.Close() }

// countingReader counts the calls to a reader.
type countingReader struct {
	reader backend.Reader
	work   *atomic.Int64
}

// asked counts a call and returns the wrapped reader.
func (r countingReader) asked() backend.Reader {
	r.work.Add(1)
	return r.reader
}

func counted[T any](work *atomic.Int64, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		work.Add(1)
		for v, err := range all {
			work.Add(1)
			if !yield(v, err) {
				return
			}
		}
	}
}

func (r countingReader) Head(ctx context.Context) (backend.Cursor, error) { return r.asked().Head(ctx) }

func (r countingReader) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return r.asked().Thread(ctx, id)
}

func (r countingReader) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return counted(r.work, r.reader.Threads(ctx, after))
}

func (r countingReader) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return counted(r.work, r.reader.ThreadsEnding(ctx, end))
}

func (r countingReader) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return r.asked().Context(ctx, id)
}

func (r countingReader) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return r.asked().Remnant(ctx, id)
}

func (r countingReader) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return counted(r.work, r.reader.Contexts(ctx, thread, after))
}

func (r countingReader) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return r.asked().LastMessage(ctx, home)
}

func (r countingReader) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return counted(r.work, r.reader.ListThreads(ctx, q))
}

func (r countingReader) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return counted(r.work, r.reader.ContextsAlone(ctx, after))
}

func (r countingReader) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return counted(r.work, r.reader.Children(ctx, parent, after))
}

func (r countingReader) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return r.asked().Branch(ctx, thread, name)
}

func (r countingReader) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return counted(r.work, r.reader.Branches(ctx, thread, prefix, after))
}

func (r countingReader) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return counted(r.work, r.reader.BranchesOf(ctx, thread, id))
}

func (r countingReader) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return counted(r.work, r.reader.BranchesBySource(ctx, sourceID, thread))
}

func (r countingReader) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return counted(r.work, r.reader.CheckpointsBySource(ctx, sourceID, thread))
}

func (r countingReader) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return r.asked().Checkpoint(ctx, thread, name)
}

func (r countingReader) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return counted(r.work, r.reader.Checkpoints(ctx, thread, after))
}

func (r countingReader) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return r.asked().Run(ctx, id)
}

func (r countingReader) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	runs, err := r.asked().Ancestry(ctx, id, limit)
	r.work.Add(int64(len(runs)))
	return runs, err
}

func (r countingReader) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return counted(r.work, r.reader.Forks(ctx, run))
}

func (r countingReader) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return counted(r.work, r.reader.ForksAt(ctx, at))
}

func (r countingReader) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return r.asked().Last(ctx, run)
}

func (r countingReader) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return counted(r.work, r.reader.Path(ctx, tip, w, o))
}

func (r countingReader) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return r.asked().Digest(ctx, tip)
}

func (r countingReader) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return counted(r.work, r.reader.Find(ctx, sourceID, thread, after))
}

func (r countingReader) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return counted(r.work, r.reader.RunsOf(ctx, thread, after))
}

func (r countingReader) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return r.asked().Value(ctx, key)
}

func (r countingReader) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return counted(r.work, r.reader.Values(ctx, owner, prefix, after))
}

func (r countingReader) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return counted(r.work, r.reader.ValueHistory(ctx, key))
}

func (r countingReader) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return counted(r.work, r.reader.ValueOwners(ctx, scope, after))
}

func (r countingReader) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return r.asked().SpanSet(ctx, id)
}

func (r countingReader) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return counted(r.work, r.reader.Alternatives(ctx, id))
}

func (r countingReader) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return counted(r.work, r.reader.Summaries(ctx, id))
}

func (r countingReader) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return counted(r.work, r.reader.Reflog(ctx, id))
}

func (r countingReader) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	r.work.Add(int64(len(ids)))
	return r.asked().Has(ctx, ids)
}

func (r countingReader) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	r.work.Add(int64(len(ids)))
	return r.asked().Blocks(ctx, ids)
}

func (r countingReader) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	r.work.Add(int64(len(keys)))
	return r.asked().Chunks(ctx, keys)
}

func (r countingReader) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return counted(r.work, r.reader.Where(ctx, id))
}

func (r countingReader) Stats(ctx context.Context) (backend.Stats, error) {
	return r.asked().Stats(ctx)
}

// RequireScale fails the test if an operation costs more than twice as much with 2,000
// items as with 100. costs returns the costs by operation for n items.
//
// An operation that reads all items costs 1,900 more. So with 100 items it must cost
// less than that, or the growth would not be detected.
func RequireScale(t testing.TB, costs func(n int) map[string]int64) {
	t.Helper()
	const least, most = 100, 2_000
	few, many := costs(least), costs(most)
	for name, cost := range few {
		if many[name] > 2*cost {
			t.Errorf("%s costs %d with %d and %d with %d", name, cost, least, many[name], most)
		}
		if cost >= most-least {
			t.Errorf("%s costs %d with %d: too much to detect growth", name, cost, least)
		}
	}
}
