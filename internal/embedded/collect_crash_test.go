package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// fillForCollection writes commits of all kinds to a disk and collects some of them.
func fillForCollection(t *testing.T, disk *crashfs.FS, seed uint64) *collectStore {
	s := &collectStore{
		t: t, dir: t.TempDir(), author: &backendtest.Author{Chooser: rand.New(rand.NewPCG(seed, 5))}, state: backendtest.NewModel(),
		opt: Options{Durability: backend.Full, SegmentSize: 4 << 10, FS: disk, NoPacking: true},
	}
	s.open()
	for i := range 90 {
		s.commit()
		if i == 40 {
			s.collect(0)
		}
	}
	if packed := seed % 3; packed > 0 {
		_, err := s.engine.Pack(background, backend.PackOptions{All: true, Dense: packed == 2})
		require.NoError(t, err)
	}
	return s
}

// crashed returns the store after one crash, opened.
func (s *collectStore) crashed(c crashfs.Crash) *collectStore {
	s.t.Helper()
	after := *s
	after.opt.FS = s.opt.FS.(*crashfs.FS).Crash(c)
	left, err := os.ReadFile(filepath.Join(s.dir, indexFile))
	require.NoError(s.t, err)
	_ = s.engine.Close()
	require.NoError(s.t, os.RemoveAll(s.dir))
	require.NoError(s.t, os.Mkdir(s.dir, 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, indexFile), left, 0o600))
	after.opt.Logger = slog.New(notDamaged{slog.DiscardHandler, s.t})
	after.open()
	return &after
}

// notDamaged requires that an index which a collection left is not reported as one that is damaged: a
// verification counts that as damage.
type notDamaged struct {
	slog.Handler
	t tester
}

func (h notDamaged) Enabled(context.Context, slog.Level) bool { return true }

func (h notDamaged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && r.Level >= slog.LevelWarn && errors.Is(err, collect.ErrPending) {
			h.t.Errorf("%s: %v", r.Message, err)
		}
		return true
	})
	return nil
}

// The power fails at every operation of a collection. The store is as it was before the collection
// or as it is after it, and stays so. The next collection finishes the work, through more crashes.
//
//test:norace
func TestCollectCrashAtEveryOperation(t *testing.T) {
	for i := range campaign.Rounds(3) {
		seed := campaign.Seed() + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crashCollections(t, seed) })
	}
}

func crashCollections(t *testing.T, seed uint64) {
	disk := crashfs.New()
	s := fillForCollection(t, disk, seed)
	uncollected, begin := ask(s.t, s.engine, s.ever), disk.Ops()
	s.collectRest()
	collected, ops := ask(s.t, s.engine, s.ever), disk.Ops()-begin
	s.check()
	s.close()
	choose := rand.New(rand.NewPCG(seed, 2))
	outcomes := func() crashfs.Crash {
		return []crashfs.Crash{crashfs.KeepNone(), crashfs.KeepAll(), crashfs.Random(choose)}[choose.IntN(3)]
	}
	found := map[bool]bool{}
	steps := 3
	if campaign.Runs() {
		steps = 6
	}
	for n := 1 + choose.IntN(3); n <= ops; n += 1 + choose.IntN(max(ops/steps, 1)) {
		disk := crashfs.New()
		s := fillForCollection(t, disk, seed)
		disk.CrashAfter(n+begin-disk.Ops(), choose.IntN(3000))
		_, err := s.engine.Collect(background, s.collectOptions(0))
		what := fmt.Sprintf("operation %d of %d: %v", n, ops, err)
		s = s.crashed(outcomes())
		got := ask(s.t, s.engine, s.ever)
		isNotCollected, isNotUncollected := got.Wrong(collected, false), got.Wrong(uncollected, false)
		require.True(t, len(isNotCollected) == 0 || len(isNotUncollected) == 0, "%s\n%v\n%v", what, isNotCollected, isNotUncollected)
		if found[len(isNotCollected) == 0] = true; len(isNotCollected) == 0 {
			s.modelCollects(s.collectOptions(0))
		}
		s.surviveCrash(choose, outcomes, what)
	}
	require.Len(t, found, 2)
}

// surviveCrash opens a store after a crash that may have interrupted a collection, uses it and
// collects.
func (s *collectStore) surviveCrash(choose *rand.Rand, outcomes func() crashfs.Crash, what string) {
	s.t.Helper()
	s.verify()
	for range choose.IntN(3) * 4 {
		s.commit()
	}
	switch choose.IntN(4) {
	case 0:
		s.close()
		s.open()
	case 1:
		s.rebuildIndex()
	case 2:
		_, err := s.engine.Pack(background, backend.PackOptions{All: true})
		require.NoError(s.t, err)
	}
	s.check()
	s.verify()
	if choose.IntN(2) == 0 { // crash again
		o := s.collectOptions(0)
		s.opt.FS.(*crashfs.FS).CrashAfter(1+choose.IntN(40), choose.IntN(3000))
		if _, err := s.engine.Collect(background, o); err != nil {
			s = s.crashed(outcomes())
			s.requireEither(o)
		} else {
			s = s.crashed(crashfs.KeepAll())
			s.modelCollects(o)
		}
		s.check()
		s.verify()
	}
	s.endsCollected(what)
}

// endsCollected ends what is left of a collection, uses the store, which is sound and has nothing pending, and closes it.
func (s *collectStore) endsCollected(what string) {
	s.t.Helper()
	s.collectRest()
	s.check()
	s.verify()
	for range 5 {
		s.commit()
	}
	s.rebuildIndex()
	s.check()
	names, err := s.opt.FS.List(filepath.Join(s.dir, journalDir))
	require.NoError(s.t, err)
	require.NotContains(s.t, strings.Join(names, "\n"), pendingFile, what)
	s.close()
}

// requireEither requires the store to be as before or as after a collection.
func (s *collectStore) requireEither(o backend.CollectOptions) {
	s.t.Helper()
	got, collected := ask(s.t, s.engine, s.ever), s.state.Clone()
	delete(got, "feed")
	collected.Collect(o.Now, max(o.KeepReflog, 0))
	if len(got.Wrong(collected.Facts(censusOf(s.ever)), false)) == 0 {
		s.state = collected
	}
	require.Empty(s.t, got.Wrong(s.state.Facts(censusOf(s.ever)), false))
}

// A collection can be canceled at any moment. The store can be used, and the next collection
// succeeds.
//
//test:norace
func TestCollectIsCanceled(t *testing.T) {
	for n := range int64(campaign.Rounds(12)) {
		s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(uint64(n), 3)))
		s.opt.SegmentSize = 4 << 10
		s.close()
		s.open()
		for range 60 {
			s.commit()
		}
		ctx, cancel := context.WithCancelCause(background)
		off := errors.New("canceled")
		o := s.collectOptions(0)
		calls := int64(0)
		o.Progress = func(done, total int64) {
			require.LessOrEqual(t, done, total)
			if calls++; calls > n*20%600 {
				cancel(off)
			}
		}
		_, err := s.engine.Collect(ctx, o)
		if err != nil {
			require.ErrorIs(t, err, off)
		}
		cancel(nil)
		s.verify()
		if n%2 == 0 {
			s.close()
			s.open()
			s.verify()
			s.requireEither(o)
		}
		s.collectRest()
		s.check()
		s.verify()
		for range 20 {
			s.commit()
		}
		s.rebuildIndex()
		s.check()
		s.close()
		require.False(t, slices.ContainsFunc(append(namesIn(t, s.dir), namesIn(t, filepath.Join(s.dir, journalDir))...), func(name string) bool {
			return name == pendingFile || strings.HasPrefix(name, "verify-")
		}))
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Closing a store ends its collection.
func TestCloseDuringCollect(t *testing.T) {
	s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(4, 4)))
	for range 120 {
		s.commit()
	}
	o := s.collectOptions(0)
	closed := make(chan error)
	once := false
	o.Progress = func(int64, int64) {
		if !once {
			once = true
			go func() { closed <- s.engine.Close() }()
			for !s.engine.closed.Load() {
				runtime.Gosched()
			}
		}
	}
	_, err := s.engine.Collect(background, o)
	require.ErrorIs(t, err, backend.ErrClosed)
	require.NoError(t, <-closed)
	s.open()
	s.check()
	s.verify()
	s.close()
}
