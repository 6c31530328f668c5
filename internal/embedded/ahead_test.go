package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// prefetchLog records which keys and spans were prefetched, and reports reads of others.
type prefetchLog struct {
	mu      sync.Mutex
	keys    map[string]bool
	ranges  []read.Range
	lasts   []read.Range
	commits map[journal.Position]bool
	asked   int // number of prefetches
	fail    func(string)
}

func newPrefetchLog(fail func(string)) *prefetchLog {
	return &prefetchLog{keys: map[string]bool{}, commits: map[journal.Position]bool{}, fail: fail}
}

func (p *prefetchLog) Prefetch(_ context.Context, n read.Need) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	for _, k := range n.Keys {
		p.keys[string(k)] = true
	}
	p.ranges, p.lasts = append(p.ranges, n.Ranges...), append(p.lasts, n.Lasts...)
	for _, at := range n.Commits {
		p.commits[at] = true
	}
	return nil
}

func within(all []read.Range, from, to []byte) bool {
	for _, r := range all {
		if bytes.Compare(r.From, from) <= 0 && (r.To == nil || to != nil && bytes.Compare(to, r.To) <= 0) {
			return true
		}
	}
	return false
}

func (p *prefetchLog) key(k []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.keys[string(k)] && !within(p.ranges, k, k) && !within(p.lasts, k, k) {
		p.fail(fmt.Sprintf("%q", k))
	}
}

func (p *prefetchLog) span(all *[]read.Range, from, to []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !within(*all, from, to) {
		p.fail(fmt.Sprintf("%q to %q", from, to))
	}
}

// checkedIndex is an index that reports reads that were not prefetched.
type checkedIndex struct {
	read.Index
	read.Commits
	prefetchLog *prefetchLog
}

func (i *checkedIndex) Get(k []byte) ([]byte, bool, error) {
	i.prefetchLog.key(k)
	return i.Index.Get(k)
}

func (i *checkedIndex) Scan(from, to []byte) iter.Seq2[index.Entry, error] {
	i.prefetchLog.span(&i.prefetchLog.ranges, from, to)
	return i.Index.Scan(from, to)
}

func (i *checkedIndex) Last(from, to []byte) (index.Entry, bool, error) {
	i.prefetchLog.span(&i.prefetchLog.lasts, from, to)
	return i.Index.Last(from, to)
}

func (i *checkedIndex) NewReader() read.Reader {
	return &checkedReader{i.Commits.NewReader(), i.prefetchLog}
}

type checkedReader struct {
	read.Reader
	prefetchLog *prefetchLog
}

func (r *checkedReader) Frame(p journal.Position) (journal.Frame, error) {
	if !r.prefetchLog.commits[p] {
		r.prefetchLog.fail(fmt.Sprint(p))
	}
	return r.Reader.Frame(p)
}

func (r *checkedReader) Object(frame journal.Position, record, size int64) (structure.Record, error) {
	if !r.prefetchLog.commits[frame] {
		r.prefetchLog.fail(fmt.Sprint(frame))
	}
	return r.Reader.Object(frame, record, size)
}

// checkedView returns a view without caches of a store that has no packs.
func checkedView(v *read.View, p *prefetchLog) *read.View {
	i := &checkedIndex{v.Index, v.Commits, p}
	return &read.View{Index: i, Commits: i, Ahead: p}
}

// checkedSource is the state of an engine in which only prefetched keys may be looked up.
type checkedSource struct {
	*latestState
	prefetchLog *prefetchLog
}

func (s *checkedSource) Get(k []byte) ([]byte, bool, error) {
	s.prefetchLog.key(k)
	return s.latestState.Get(k)
}

func (s *checkedSource) Scan(from, to []byte) iter.Seq2[index.Entry, error] {
	s.prefetchLog.span(&s.prefetchLog.ranges, from, to)
	return s.latestState.Scan(from, to)
}

func (s *checkedSource) View() *read.View { return checkedView(s.latestState.View(), s.prefetchLog) }

// prefetching is an engine that judges each commit three times: first with the keys that it names,
// then in a state in which only prefetched entries may be read. Blocks, chunks and paths are checked
// in the same way.
type prefetching struct {
	*Engine
	t testing.TB
}

func (n *prefetching) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if n.begin() == nil {
		judgeNamed(n.t, n.Engine, c, o)
		n.judge(c, o)
		n.end()
	}
	return n.Engine.Apply(ctx, c, o)
}

func (n *prefetching) judge(c *structure.Commit, o backend.Options) {
	e := n.Engine
	e.write.Lock()
	defer e.write.Unlock()
	fail := func(what string) { n.t.Errorf("%s is not prefetched for %v", what, c.Records) }
	p := newPrefetchLog(fail)
	state := entries.State{Latest: &checkedSource{(*latestState)(e), p}, Cache: entries.NewCache()}
	state.Begin(e.index.Number()+1, false)
	var prepared judge.Preparation
	if prepared.Begin(c) != nil {
		return
	}
	if err := state.Prefetch(context.Background(), p, judge.Keys(judge.Case{Commit: c}, o)); err != nil {
		return
	}
	p.fail = func(what string) {
		switch { // names of content that is not stored yet, and results of lookups by source id in any thread
		case what[1] == keys.TableBranchOfContext, len(o.Sources) > 0 && (what[1] == keys.TableThread || what[1] == keys.TableSpanBySource):
		default:
			fail(what)
		}
	}
	if judge.Expect(&state, o) != nil {
		return
	}
	prepared.Commit.Number = e.index.Number() + 1
	var j judge.Judge
	effects, err := j.Judge(context.Background(), judge.Case{Commit: &prepared.Commit, View: &state})
	if err != nil {
		return
	}
	var b entries.Builder
	b.Begin(&state, effects)
	if b.Prefetch(context.Background(), p) == nil {
		_ = b.Entries(len(prepared.Commit.Records))
	}
}

// view calls fn with a view that reports reads that were not prefetched. Entries of the tables in
// free are exempt.
func (n *prefetching) view(fn func(*read.View), free ...byte) {
	if n.begin() != nil {
		return
	}
	defer n.end()
	v := n.now()
	defer v.Close()
	if v.at.packs.last != 0 {
		return
	}
	fn(checkedView(v.View, newPrefetchLog(func(what string) {
		if !bytes.Contains(free, []byte{what[1]}) {
			n.t.Errorf("%s is not prefetched", what)
		}
	})))
}

func (n *prefetching) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	n.view(func(v *read.View) { _, _ = v.Has(ctx, ids) })
	return n.Engine.Has(ctx, ids)
}

func (n *prefetching) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	n.view(func(v *read.View) { _, _ = v.Blocks(ctx, ids) })
	return n.Engine.Blocks(ctx, ids)
}

func (n *prefetching) Chunks(ctx context.Context, all []content.Key) ([][]byte, error) {
	n.view(func(v *read.View) { _, _ = v.Chunks(ctx, all) })
	return n.Engine.Chunks(ctx, all)
}

func (n *prefetching) Path(ctx context.Context, at structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	n.view(func(v *read.View) {
		o := o
		o.Bodies = false // bodies may be in any commit
		for range v.Path(ctx, at, w, o) {
		}
	}, keys.TableSpan, keys.TableRun)
	return n.Engine.Path(ctx, at, w, o)
}

// The suite's commits name all keys that their judgment looks up. Everything that the commits and
// reads of the suite look up is prefetched.
//
//test:norace
func TestPrefetch(t *testing.T) {
	backendtest.Run(t, backendtest.Config{New: func(t testing.TB) backendtest.OpenFunc {
		open := newStore(Options{Durability: backend.Normal, NoPacking: true})(t)
		return func(ctx context.Context) (backend.Engine, error) {
			e, err := open(ctx)
			if err != nil {
				return nil, err
			}
			e.(*Engine).builder.Digests = true
			return &prefetching{e.(*Engine), t}, nil
		}
	}})
}

// failingPrefetcher fails once, at a call.
type failingPrefetcher struct{ calls, failing int }

var errPrefetch = errors.New("nothing was prefetched")

func (p *failingPrefetcher) Prefetch(context.Context, read.Need) error {
	if p.calls++; p.calls == p.failing {
		return errPrefetch
	}
	return nil
}

// Steps end with the error of a prefetch, whichever it is.
func TestStepsEndWithErrorOfPrefetch(t *testing.T) {
	e := fill(t, t.TempDir(), Options{}, 3)
	defer e.Close()
	var refs []structure.SpanRef
	for c, err := range e.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		for _, r := range c.Records {
			if s, ok := r.(*structure.Span); ok {
				refs = append(refs, s.Ref)
			}
		}
	}
	require.NotEmpty(t, refs)
	latest := e.latest()
	defer latest.Close()
	for failing := 1; ; failing++ {
		v := latest.view
		p := &failingPrefetcher{failing: failing}
		v.Ahead = p
		var failed error
		for _, err := range v.Steps(background, refs) {
			failed = err
		}
		if p.calls < failing {
			require.NoError(t, failed)
			break
		}
		require.ErrorIs(t, failed, errPrefetch, failing)
	}
}
