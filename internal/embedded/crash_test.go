package embedded

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// work is deterministic: commits of all kinds, synced or not, in several segments,
// with checkpoints and reopening. It stops when the power fails.
func work(s *crashStore) {
	for i := range 24 {
		if s.dead() || s.engine == nil {
			return
		}
		d := backend.Full
		if i%3 != 0 {
			d = backend.Normal
		}
		_ = s.commit(d)
		switch i {
		case 5, 20:
			_ = s.checkpoint(true)
		case 9:
			_ = s.sync()
		case 13:
			if s.close() == nil {
				_ = s.open()
			}
		}
	}
}

// workOn runs work on a disk.
func workOn(t *testing.T, disk *crashfs.FS) *crashStore {
	s := newCrashStore(t, t.TempDir(), rand.New(rand.NewPCG(7, 7)), disk, Options{SegmentSize: 1, OverlayBytes: 1 << 20})
	work(s)
	return s
}

//test:norace
func TestCrashAtEveryOperation(t *testing.T) {
	disk := crashfs.New()
	s := workOn(t, disk)
	require.NoError(t, s.close())
	ops := disk.Ops()
	require.Greater(t, ops, 40)
	require.Greater(t, len(disk.Names()), 3, "segments")
	for i, n := range campaign.Sample(ops, 12) {
		choose := rand.New(rand.NewPCG(uint64(n), 1))
		disk := crashfs.New()
		disk.CrashAfter(n, choose.IntN(3000))
		s := workOn(t, disk)
		_ = s.close()
		require.True(t, s.dead())
		outcomes := []struct {
			crash  crashfs.Crash
			killed bool
		}{{crashfs.KeepNone(), false}, {crashfs.KeepAll(), true}, {crashfs.Random(choose), false}, {crashfs.Random(choose), false}}
		if !campaign.Runs() {
			outcomes = outcomes[i%2*2:][:2]
		}
		for _, c := range outcomes {
			putBack := keepIndex(t, s)
			after := s.outcome(c.crash, c.killed, indexAfter(choose.IntN(int(indexChoices))))
			after.outlive(choose)
			require.NoError(t, after.close())
			putBack()
		}
	}
}

// keepIndex returns a function that restores the index to its current state.
func keepIndex(t *testing.T, s *crashStore) func() {
	b, err := os.ReadFile(s.indexPath())
	require.NoError(t, err)
	return func() { require.NoError(t, os.WriteFile(s.indexPath(), b, 0o600)) }
}

// The disk has everything that was written up to any byte.
//
//test:norace
func TestCrashAtEveryByte(t *testing.T) {
	disk := crashfs.New()
	s := newCrashStore(t, t.TempDir(), rand.New(rand.NewPCG(3, 3)), disk, Options{})
	for range 3 {
		require.NoError(t, s.commit(backend.Full))
	}
	require.NoError(t, s.commit(backend.Normal)) // so that the journal reserves space
	require.NoError(t, s.checkpoint(true))
	require.NoError(t, s.sync())
	before := int(disk.UnsyncedBytes())
	require.Zero(t, before)
	for range 6 {
		require.NoError(t, s.commit(backend.Normal))
	}
	choose := rand.New(rand.NewPCG(1, 2))
	found, sizes := map[int]bool{}, disk.UnsyncedSizes()
	require.Len(t, sizes, 6)
	at := campaign.Sample(int(disk.UnsyncedBytes()), 80)
	end := 0
	for _, size := range sizes { // and where each commit ends
		end += size
		at = append(at, end)
	}
	for _, n := range at {
		kept, torn := 0, n
		for ; kept < len(sizes) && torn >= sizes[kept]; kept++ {
			torn -= sizes[kept]
		}
		putBack := keepIndex(t, s)
		after := s.outcome(crashfs.KeepPrefix(kept, torn), false, indexAfter(n%int(indexChoices)))
		found[len(after.written)] = true
		require.Equal(t, 4+kept, len(after.written))
		if n%40 == 1 {
			after.outlive(choose)
		}
		after.stop()
		putBack()
	}
	require.GreaterOrEqual(t, len(found), 6, "every prefix occurs")
}

// The power fails in the sync of a fold that started in the background during
// queries. All further answers are right.
//
//test:norace
func TestCrashWhileAsked(t *testing.T) {
	choose := rand.New(rand.NewPCG(8, 8))
	s := newCrashStore(t, t.TempDir(), choose, crashfs.New(), Options{OverlayBytes: 1})
	for range 40 {
		require.NoError(t, s.commit(backend.Normal))
		s.disk.CrashAfter(1, 0)
		s.check()
		s.crash(crashfs.Random(choose), false, indexAsItIs)
	}
	require.NoError(t, s.close())
}

// Random events in random order.
func TestCrashModel(t *testing.T) {
	room := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			SegmentSize:  rapid.SampledFrom([]int64{1, 64 << 10}).Draw(t, "segment size"),
			OverlayBytes: rapid.SampledFrom([]int64{1, 4 << 10, 1 << 20}).Draw(t, "overlay bytes"),
		}
		s := newCrashStore(t, room, backendtest.Drawn{T: t}, crashfs.New(), o)
		defer os.RemoveAll(s.dir)
		defer s.stop()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			anything(t, s)
			if s.dead() || s.engine == nil {
				s.drawCrash(t)
			}
		}
		s.drawCrash(t)
		s.disk.SetCapacity(0)
		for range 3 { // the store works from there on
			require.NoError(t, s.commit(backend.Full))
		}
		s.verify()
		require.NoError(t, s.close())
		require.NoError(t, s.open())
		s.check()
	})
}

// anything runs one random event on a store.
func anything(t *rapid.T, s *crashStore) {
	switch rapid.IntRange(0, 24).Draw(t, "event") {
	case 0, 1:
		_ = s.sync()
	case 2:
		_ = s.checkpoint(rapid.Bool().Draw(t, "keep a copy"))
	case 3:
		s.reopen()
	case 4:
		s.disk.ShortWrite(rapid.IntRange(1, 5).Draw(t, "operation"), rapid.IntRange(0, 5000).Draw(t, "written"), errDisk)
	case 5:
		s.disk.FailSyncs(errDisk)
	case 6:
		s.disk.FailSyncs(nil)
	case 7:
		s.disk.SetCapacity(s.disk.Used() + rapid.Int64Range(1, 3000).Draw(t, "room"))
	case 8, 9:
		s.disk.SetCapacity(0)
	case 10:
		s.disk.CrashAfter(rapid.IntRange(1, 8).Draw(t, "operations"), rapid.IntRange(0, 5000).Draw(t, "torn"))
	case 11:
		s.drawCrash(t)
	case 12:
		s.check()
	default:
		_ = s.commit(rapid.SampledFrom([]backend.Durability{backend.Full, backend.Normal}).Draw(t, "durability"))
	}
}

func (s *crashStore) drawCrash(t *rapid.T) {
	i := indexAfter(rapid.IntRange(0, int(indexChoices)-1).Draw(t, "index"))
	switch rapid.IntRange(0, 3).Draw(t, "kind of crash") {
	case 0:
		s.crash(crashfs.KeepNone(), false, i)
	case 1:
		s.crash(crashfs.KeepAll(), true, i)
	case 2:
		kept := rapid.IntRange(0, s.disk.UnsyncedOps()).Draw(t, "kept")
		s.crash(crashfs.KeepPrefix(kept, rapid.IntRange(0, 5000).Draw(t, "torn")), false, i)
	default:
		seed := rapid.Uint64().Draw(t, "seed")
		s.crash(crashfs.Random(rand.New(rand.NewPCG(seed, 0))), false, i)
	}
}
