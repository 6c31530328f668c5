package embedded

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// collectStore is an engine with a model, which has its own implementation of
// collection.
type collectStore struct {
	t      tester
	dir    string
	opt    Options
	engine *Engine
	author *backendtest.Author
	state  *backendtest.Model
	ever   []*structure.Commit
	pinned collect.View // closed when a test fails early
}

func newCollectStore(t tester, dir string, choose backendtest.Chooser) *collectStore {
	s := &collectStore{
		t: t, dir: dir, author: &backendtest.Author{Chooser: choose}, state: backendtest.NewModel(),
		opt: Options{Durability: backend.Normal, SegmentSize: 8 << 10, NoPacking: true},
	}
	s.open()
	return s
}

func (s *collectStore) open() {
	s.t.Helper()
	e, err := Open(background, s.dir, s.opt)
	require.NoError(s.t, err)
	s.engine = e
}

func (s *collectStore) close() {
	s.t.Helper()
	if s.pinned.Close != nil {
		s.pinned.Close()
	}
	require.NoError(s.t, s.engine.Close())
}

func (s *collectStore) commit() {
	s.t.Helper()
	c := s.author.Next(s.state)
	s.ever = append(s.ever, c)
	receipt, err := s.engine.Apply(background, c, backend.Options{})
	require.NoError(s.t, err)
	s.state.Apply(s.t, c)
	require.Equal(s.t, s.state.Number(), receipt.Number)
}

// collectOptions keeps reflog entries for keep commits, and nothing unused.
func (s *collectStore) collectOptions(keep int) backend.CollectOptions {
	return backend.CollectOptions{Now: s.author.Now(), KeepReflog: time.Duration(keep)*time.Millisecond - 1, KeepUnused: -1}
}

func (s *collectStore) collect(keep int) backend.CollectReport {
	s.t.Helper()
	o := s.collectOptions(keep)
	o.DryRun = true
	would, err := s.engine.Collect(background, o)
	require.NoError(s.t, err)
	s.check()
	did := s.collectAs(s.collectOptions(keep))
	would.After = did.After
	require.Equal(s.t, would, did)
	return did
}

// collectRest finishes an interrupted collection.
func (s *collectStore) collectRest() {
	s.t.Helper()
	s.collectAs(s.collectOptions(0))
}

func (s *collectStore) collectAs(o backend.CollectOptions) backend.CollectReport {
	s.t.Helper()
	did, err := s.engine.Collect(background, o)
	require.NoError(s.t, err)
	s.modelCollects(o)
	return did
}

func (s *collectStore) modelCollects(o backend.CollectOptions) {
	s.state = s.state.Clone()
	s.state.Collect(o.Now, max(o.KeepReflog, 0))
}

func (s *collectStore) check() {
	s.t.Helper()
	got := ask(s.t, s.engine, s.ever)
	delete(got, "feed")
	require.Empty(s.t, got.Wrong(s.state.Facts(censusOf(s.ever)), false))
	number := uint64(0)
	for c, err := range s.engine.Feed(background, backend.Cursor{}) {
		require.NoError(s.t, err)
		number++
		require.Equal(s.t, number, c.Number)
	}
	require.Equal(s.t, s.state.Number(), number)
}

func (s *collectStore) verify() {
	s.t.Helper()
	require.Empty(s.t, complaints(s.t, s.engine))
}

// rebuildIndex rebuilds the index from the journal.
func (s *collectStore) rebuildIndex() {
	s.t.Helper()
	s.close()
	if err := os.Remove(filepath.Join(s.dir, indexFile)); !errors.Is(err, os.ErrNotExist) { // a small dense store has none
		require.NoError(s.t, err)
	}
	s.open()
}

//test:norace
func TestCollectModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "store")
		require.NoError(rt, err)
		s := newCollectStore(rt, dir, backendtest.Drawn{T: rt})
		defer func() { s.close() }()
		s.opt.SegmentSize = rapid.SampledFrom([]int64{4 << 10, 1 << 20}).Draw(rt, "segment size")
		s.steps(rt, rapid.IntRange(1, 40).Draw(rt, "steps"))
	})
}

func (s *collectStore) steps(t *rapid.T, n int) {
	for range n {
		switch rapid.IntRange(0, 11).Draw(t, "step") {
		case 0:
			s.collect(rapid.IntRange(0, 20).Draw(t, "keep"))
			s.check()
			s.verify()
		case 1:
			s.rebuildIndex()
			s.check()
		case 2:
			s.close()
			s.open()
			s.check()
		default:
			for range rapid.IntRange(1, 8).Draw(t, "commits") {
				s.commit()
			}
		}
	}
	s.check()
	s.verify()
}

// TestCollectLongRandom is the same with longer and cheaper rounds.
//
//test:norace
func TestCollectLongRandom(t *testing.T) {
	campaign.Long(t)
	for seed := range uint64(campaign.Rounds(2)) {
		s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(seed, 0)))
		for range 6 {
			for range 60 {
				s.commit()
			}
			s.collect(int(seed) * 10)
			s.check()
			s.verify()
			s.rebuildIndex()
			s.check()
		}
		s.close()
	}
}

// Erased content stays known as erased, even if the store has nothing else.
func TestErasedStaysKnown(t *testing.T) {
	dir := t.TempDir()
	e := reopen(t, dir, Options{})
	b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), []byte("b"))
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{b}}, backend.Options{})
	require.NoError(t, err)
	erase := &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindBlock, Content: b.ID, At: time.Now()}}}
	_, err = e.Apply(background, erase, backend.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())

	e = reopen(t, dir, Options{})
	_, err = e.Collect(background, backend.CollectOptions{})
	require.NoError(t, err)
	for range 2 {
		_, err = e.Apply(background, erase, backend.Options{})
		require.NoError(t, err)
		_, err = e.Blocks(background, []content.ID{b.ID})
		require.ErrorIs(t, err, backend.ErrErased)
	}
}

// Filtering is idempotent, and the result can be encoded.
func TestFilterTwice(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(3, 3)))
	defer s.close()
	for range 200 {
		s.commit()
	}
	c := s.begin()
	require.NoError(t, c.Mark())
	snapshot := s.engine.latest()
	defer snapshot.Close()
	var first, again backend.CollectReport
	for f, err := range snapshot.viewed().history().History(1, 200) {
		require.NoError(t, err)
		var gone live.Removed
		c.Live().Filter(f.Commit, &gone)
		gone.AddTo(&first)
		var left []structure.Record
		for _, r := range f.Records {
			if r != nil {
				left = append(left, r)
			}
		}
		f.Records = slices.Clone(left)
		gone = live.Removed{}
		require.False(t, c.Live().Filter(f.Commit, &gone))
		gone.AddTo(&again)
		require.Equal(t, left, f.Records)
		payload, _, err := new(structure.Encoder).Encode(f.Commit)
		require.NoError(t, err)
		back, err := structure.DecodeCommit(payload)
		require.NoError(t, err)
		require.Len(t, back.Records, len(left))
	}
	require.NotZero(t, first.Records)
	require.NotZero(t, first.Erased)
	require.Zero(t, again)
}
