package embedded

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// encoded returns the bytes of a live set.
func encoded(t tester, l *liveSet) []byte { return encodedOf(t, [16]byte{1}, l) }

func encodedOf(t tester, store [16]byte, l *liveSet) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, writeLiveSet(&b, store, l))
	return b.Bytes()
}

func decoded(t tester, b []byte) (*liveSet, [16]byte, error) {
	t.Helper()
	return readLiveSet(bytes.NewReader(b), int64(len(b)), "set")
}

// requireEqualSets compares live sets; the order in their hash tables may differ.
func requireEqualSets(t tester, want, is *liveSet) {
	t.Helper()
	want, is = new(*want), new(*is)
	for _, s := range [][2]*hashSet{{&want.contents, &is.contents}, {&want.values, &is.values}} {
		require.Equal(t, slices.Sorted(s[0].all()), slices.Sorted(s[1].all()))
	}
	want.contents, want.values, is.contents, is.values = hashSet{}, hashSet{}, hashSet{}, hashSet{}
	require.Equal(t, want, is)
}

func ids[K comparable](t *rapid.T, label string, derive func(string) K) map[K]struct{} {
	m := map[K]struct{}{}
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, 300), 0, 5).Draw(t, label) {
		m[derive(strconv.Itoa(n))] = struct{}{}
	}
	return m
}

func numbered[K comparable, V any](of map[K]struct{}, value func() V) map[K]V {
	m := map[K]V{}
	for k := range of {
		m[k] = value()
	}
	return m
}

func drawLiveSet(t *rapid.T) *liveSet {
	number := func() uint64 { return rapid.Uint64().Draw(t, "number") }
	began := func() beginning {
		return beginning{rapid.Uint64Max(1<<63-1).Draw(t, "began"), rapid.Bool().Draw(t, "shared")}
	}
	run := func(s string) structure.RunID { return structure.DeriveID[structure.RunID](s) }
	context := func(s string) structure.ContextID { return structure.DeriveID[structure.ContextID](s) }
	thread := func(s string) structure.ThreadID { return structure.DeriveID[structure.ThreadID](s) }
	block := func(s string) content.ID { return content.Sum([]byte(s)) }
	l := &liveSet{
		until:       number(),
		runs:        numbered(ids(t, "runs", run), func() liveRun { return liveRun{number(), number()} }),
		threads:     ids(t, "threads", thread),
		contexts:    numbered(ids(t, "contexts", context), began),
		remnants:    numbered(ids(t, "remnants", context), began),
		sets:        ids(t, "sets", func(s string) structure.SpanSetID { return structure.DeriveID[structure.SpanSetID](s) }),
		checkpoints: ids(t, "checkpoints", func(s string) structure.CheckpointID { return structure.DeriveID[structure.CheckpointID](s) }),
		summaries:   ids(t, "summaries", func(s string) structure.SummaryID { return structure.DeriveID[structure.SummaryID](s) }),
		reflog:      numbered(ids(t, "reflog", context), number), cutReflog: numbered(ids(t, "cut", context), number),
		deletedThreads: numbered(ids(t, "deleted threads", thread), number),
		erased:         ids(t, "erased", block),
		stored:         numbered(ids(t, "stored", block), number),
		deadRuns: numbered(ids(t, "dead", run), func() structure.SpanRef {
			if rapid.Bool().Draw(t, "root") {
				return structure.SpanRef{}
			}
			return structure.SpanRef{Run: run("parent"), Seq: rapid.Uint64Min(1).Draw(t, "place")}
		}),
	}
	for _, s := range []*hashSet{&l.contents, &l.values} {
		for _, h := range rapid.SliceOf(rapid.Uint64()).Draw(t, "hashes") {
			s.add(h)
		}
	}
	return l
}

func TestLiveSetReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLiveSet(t)
		is, store, err := decoded(t, encoded(t, l))
		require.NoError(t, err)
		require.Equal(t, [16]byte{1}, store)
		requireEqualSets(t, l, is)
	})
}

// Any bytes, with a right checksum or not, are read as a live set or refused.
func FuzzReadLiveSet(f *testing.F) {
	l := newLiveSet()
	l.runs[structure.RunID{1}] = liveRun{1, 2}
	l.contents.add(0)
	l.deadRuns[structure.RunID{2}] = structure.SpanRef{}
	f.Add(encoded(f, l))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for range 2 {
			is, _, err := decoded(t, b)
			switch {
			case err == nil:
				again, _, err := decoded(t, encoded(t, is))
				require.NoError(t, err)
				requireEqualSets(t, is, again)
			default:
				require.True(t, errors.Is(err, backend.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), "%v", err)
			}
			if len(b) >= 4 {
				b = binary.LittleEndian.AppendUint32(b[:len(b)-4:len(b)-4], crc32.Checksum(b[:len(b)-4], castagnoli))
			}
		}
	})
}

func TestLiveSetGolden(t *testing.T) {
	l := newLiveSet()
	l.until = 300
	l.runs[structure.RunID{1}] = liveRun{2, 3}
	l.contents.add(4)
	l.threads[structure.ThreadID{5}] = struct{}{}
	l.contexts[structure.ContextID{6}] = beginning{commit: 25}
	l.remnants[structure.ContextID{26}] = beginning{27, true}
	l.sets[structure.SpanSetID{7}] = struct{}{}
	l.checkpoints[structure.CheckpointID{8}] = struct{}{}
	l.summaries[structure.SummaryID{9}] = struct{}{}
	l.values.add(10)
	l.reflog[structure.ContextID{11}] = 12
	l.cutReflog[structure.ContextID{13}] = 14
	l.deletedThreads[structure.ThreadID{15}] = 16
	l.erased[content.ID{19}] = struct{}{}
	l.stored[content.ID{20}] = 21
	l.deadRuns[structure.RunID{22}] = structure.SpanRef{Run: structure.RunID{23}, Seq: 24}
	id := func(first string) string { return first + strings.Repeat("00", 15) }
	hash := func(first string) string { return first + strings.Repeat("00", 31) }
	fields := []string{
		hex.EncodeToString([]byte("LINLIVES")), "02", id("01"), "ac02",
		"01", id("01"), "0203", "01", "0400000000000000", "01", id("05"), "01", id("06"), "32", "01", id("1a"), "37", "01", id("07"), "01", id("08"), "01", id("09"),
		"01", "0a00000000000000", "01", id("0b"), "0c", "01", id("0d"), "0e", "01", id("0f"), "10",
		"01", hash("13"), "01", hash("14"), "15", "01", id("16"), "18", id("17"),
	}
	b := encoded(t, l)
	require.Equal(t, strings.Join(fields, ""), hex.EncodeToString(b[:len(b)-4]))
	require.Equal(t, crc32.Checksum(b[:len(b)-4], castagnoli), binary.LittleEndian.Uint32(b[len(b)-4:]))
}

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
	is := ask(t, s.engine, s.ever)
	s.close()
	return s, is
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
	require.NoError(t, c.mark())
	is, err := c.raise()
	require.NoError(t, err)
	is.Close()
	s.modelCollects(c.opt)
	s = s.crashed(crashfs.KeepNone())
	s.check()
	s.verify()
	s.collectRest()
	s.check()
	s.close()
}

// A salvage restores nothing that a pending collection deletes.
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
	later, store, err := decoded(t, good)
	require.NoError(t, err)
	later.until++
	requireDamaged(encodedOf(t, store, later), "of a journal with more commits")
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
func TestCollectAfterFailedPrune(t *testing.T) {
	for _, changed := range []bool{false, true} {
		s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(2, 9)))
		for range 60 {
			s.commit()
		}
		c := s.begin()
		c.opt.KeepReflog = -1
		require.NoError(t, c.mark())
		is, err := c.raise()
		require.NoError(t, err)
		if changed {
			require.NoError(t, c.prune(is))
			s.engine.collecting.done = false
		}
		is.Close()
		s.modelCollects(c.opt)
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

// Reading many hashes in the order of another table takes linear time.
func TestLargeLiveSetReadsBack(t *testing.T) {
	l, random := newLiveSet(), rand.New(rand.NewPCG(4, 9))
	for range 300_000 {
		l.contents.add(random.Uint64())
	}
	is, _, err := decoded(t, encoded(t, l))
	require.NoError(t, err)
	requireEqualSets(t, l, is)
}
