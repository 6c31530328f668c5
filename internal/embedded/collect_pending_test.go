package embedded

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// pendingStore returns a closed store, packed or not, with a pending collection that has
// swept nothing, and the answers of the store.
func pendingStore(t *testing.T, seed uint64) (*collectStore, backendtest.Facts) {
	t.Helper()
	s := newCollectStore(t, filepath.Join(t.TempDir(), "store"), rand.New(rand.NewPCG(seed, 9)))
	s.close()
	s.opt.SegmentSize = 4 << 10
	s.open()
	for range 60 {
		s.commit()
	}
	if seed%3 > 0 {
		_, err := s.engine.Pack(background, backend.PackOptions{All: true, Dense: seed%3 == 2})
		require.NoError(t, err)
	}
	s.pend()
	s.check()
	got := ask(t, s.engine, s.ever)
	s.close()
	return s, got
}

// A store with a pending collection behaves as after the collection.
//
//test:norace
func TestPendingCollection(t *testing.T) {
	for seed := range uint64(campaign.Rounds(6)) {
		s, want := pendingStore(t, seed)
		requireSame := func(dir string, o Options) {
			t.Helper()
			e := reopen(t, dir, o)
			require.Empty(t, ask(t, e, s.ever).Wrong(want, false))
			require.Empty(t, complaints(t, e))
			require.NoError(t, e.Close())
		}
		requireSame(s.dir, Options{ReadOnly: true})
		restored := filepath.Join(t.TempDir(), "restored")
		_, err := Restore(background, s.dir, restored, RestoreOptions{}) // the store itself
		require.NoError(t, err)
		requireSame(restored, Options{})

		var log []string
		o := s.opt
		o.Logger = logline.New(slog.LevelWarn, func(line string) { log = append(log, line) })
		e := reopen(t, s.dir, o)
		backup := filepath.Join(t.TempDir(), "backup")
		_, err = e.Backup(background, backup, backend.BackupOptions{})
		require.NoError(t, err)
		would, err := e.Collect(background, backend.CollectOptions{Now: s.author.Now(), DryRun: true, KeepUnused: -1})
		require.NoError(t, err)
		require.Zero(t, would.Records, "the pending collection counts as done")
		require.NoError(t, e.Close())
		if seed%3 < 2 { // a small dense store has no index
			require.Empty(t, log)
		}
		restored = filepath.Join(t.TempDir(), "restored")
		_, err = Restore(background, backup, restored, RestoreOptions{})
		require.NoError(t, err)
		requireSame(restored, Options{})

		s.open()
		for range 10 {
			s.commit()
		}
		s.close()
		s.open()
		s.check()
		s.verify()
		s.collectRest()
		s.check()
		s.verify()
		s.close()
		require.NoFileExists(t, filepath.Join(s.dir, journalDir, pendingFile))
		requireDeadGone(t, s)
	}
}

// requireDeadGone requires that no commit contains content that is not in the state.
func requireDeadGone(t *testing.T, s *collectStore) {
	t.Helper()
	e := reopen(t, s.dir, Options{ReadOnly: true})
	for c, err := range e.commitsAt(e.journal.Find(1), 1, s.state.Number(), nil) {
		require.NoError(t, err)
		for _, r := range c.Records {
			if b, ok := r.(*structure.Block); ok && (len(b.Body) > 0 || !b.Tree.IsZero()) {
				require.True(t, s.state.Has(b.ID), "%v in commit %d", b.ID, c.Number)
			}
		}
	}
	require.NoError(t, e.Close())
}

// A collection does not filter commits that replace commits lost in a power failure.
func TestPendingCollectionComesAfterItsCommits(t *testing.T) {
	disk := crashfs.New()
	s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(5, 9)))
	s.close()
	s.dir = t.TempDir()
	s.opt.FS, s.opt.SyncInterval = disk, time.Hour
	s.open()
	for range 60 {
		s.commit()
	}
	c := s.begin()
	require.NoError(t, c.Mark())
	got, err := c.Raise()
	require.NoError(t, err)
	got.Close()
	s.modelCollects(s.stepOptions())
	s = s.crashed(crashfs.KeepNone())
	s.check()
	s.verify()
	s.collectRest()
	s.check()
	s.close()
}

// A salvage restores nothing that a pending collection deletes.
//
//test:norace
func TestSalvageOfAPendingCollection(t *testing.T) {
	for seed := range uint64(campaign.Rounds(3)) {
		s, _ := pendingStore(t, seed)
		w := wreck{dir: s.dir}
		e, report, losses := w.salvage(t)
		require.Empty(t, losses)
		require.True(t, report.Whole())
		for _, c := range s.ever {
			for _, r := range c.Records {
				if b, ok := r.(*structure.Block); ok {
					has, err := e.Has(background, []content.ID{b.ID})
					require.NoError(t, err)
					require.Equal(t, s.state.Has(b.ID), has[0], "%v", b.ID)
				}
			}
		}
	}
}

// A damaged live set is detected and prevents opening for writing.
//
//test:norace
func TestDamagedPendingCollection(t *testing.T) {
	s, _ := pendingStore(t, 0)
	path := filepath.Join(s.dir, journalDir, pendingFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	choose := rand.New(rand.NewPCG(3, 3))
	requireDamaged := func(b []byte, what string) {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := Open(background, s.dir, s.opt)
		require.ErrorIs(t, err, backend.ErrCorrupt, what)
		require.ErrorContains(t, err, path, what)
		e := reopen(t, s.dir, Options{ReadOnly: true})
		require.ErrorIs(t, e.Damage(), backend.ErrCorrupt)
		require.NotEmpty(t, findings(t, e, true))
		require.NoError(t, e.Close())
	}
	for _, at := range places(choose, len(good), 30) {
		requireDamaged(flipped(choose, good, at), "byte "+strconv.Itoa(at))
	}
	for _, size := range places(choose, len(good), 10) {
		requireDamaged(good[:size], strconv.Itoa(size)+" bytes")
	}
	other, _ := pendingStore(t, 0)
	foreign, err := os.ReadFile(filepath.Join(other.dir, journalDir, pendingFile))
	require.NoError(t, err)
	requireDamaged(foreign, "of another store")
	_, _, losses := (&wreck{dir: s.dir}).salvage(t)
	require.Empty(t, losses)
	later, store, err := live.Read(bytes.NewReader(good), int64(len(good)), pendingFile)
	require.NoError(t, err)
	later.Until++
	more, err := later.Encode(store)
	require.NoError(t, err)
	requireDamaged(more, "of a journal with more commits")
	require.NoError(t, os.WriteFile(path, good[:9], 0o600))
	_, _, losses = (&wreck{dir: s.dir}).salvage(t)
	require.Len(t, losses, 1)
	require.NoError(t, os.WriteFile(path, good, 0o600))
	s.open()
	s.check()
	s.verify()
	require.NoError(t, os.Remove(path)) // by the user
	s.close()
	s.open()
	s.verify()
	s.close()
}

// The next collection finishes one that failed before or after it changed the index, also if
// it keeps more.
//
//test:norace
func TestCollectAfterFailedPrune(t *testing.T) {
	for _, changed := range []bool{false, true} {
		s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(2, 9)))
		for range 60 {
			s.commit()
		}
		all := s.stepOptions()
		all.KeepReflog = -1
		c := s.engine.newCollection(background, all)
		require.NoError(t, c.Mark())
		got, err := c.Raise()
		require.NoError(t, err)
		if changed {
			require.NoError(t, c.Prune(got))
			s.engine.collecting.Pruned = false
		}
		got.Close()
		s.modelCollects(all)
		for range 10 {
			s.commit()
		}
		o := s.collectOptions(0)
		o.KeepReflog = backend.DefaultKeepReflog
		s.collectAs(o)
		s.check()
		s.verify()
		s.rebuildIndex()
		s.check()
		s.close()
	}
}
