package live

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func TestHashSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b hashSet
		sets := [2]map[uint64]bool{{}, {}}
		hashes := rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64())).Draw(t, "hashes")
		for range rapid.IntRange(0, 3).Draw(t, "growth") {
			for range 2000 {
				hashes = append(hashes, rand.Uint64()&^1023) // these collide in the table
			}
		}
		for i, h := range hashes {
			set, model := &a, sets[0]
			if i%3 == 0 {
				set, model = &b, sets[1]
			}
			if set.add(h) == model[h] {
				t.Fatalf("adding %#x, which was there %v", h, model[h])
			}
			model[h] = true
		}
		var both hashSet
		both.addAll(&a, &b)
		for _, h := range append(hashes, 0, 1, 1<<63) {
			in := [3]bool{sets[0][h], sets[1][h], sets[0][h] && !sets[1][h]}
			if got := [3]bool{a.has(h), b.has(h), both.has(h)}; got != in {
				t.Fatalf("%#x is in the sets: %v, not %v", h, got, in)
			}
		}
	})
}

// encoded returns the bytes of a set.
func encoded(t rapid.TB, l *Set) []byte {
	t.Helper()
	b, err := l.Encode([16]byte{1})
	require.NoError(t, err)
	return b
}

func decoded(t rapid.TB, b []byte) (*Set, [16]byte, error) {
	t.Helper()
	return Read(bytes.NewReader(b), int64(len(b)), "set")
}

// requireEqualSets compares live sets; the order in their hash tables may differ.
func requireEqualSets(t rapid.TB, want, got *Set) {
	t.Helper()
	want, got = new(*want), new(*got)
	for _, s := range [][2]*hashSet{{&want.contents, &got.contents}, {&want.values, &got.values}} {
		require.Equal(t, slices.Sorted(s[0].all()), slices.Sorted(s[1].all()))
	}
	want.contents, want.values, got.contents, got.values = hashSet{}, hashSet{}, hashSet{}, hashSet{}
	require.Equal(t, want, got)
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

func drawSet(t *rapid.T) *Set {
	number := func() uint64 { return rapid.Uint64().Draw(t, "number") }
	began := func() creation {
		return creation{rapid.Uint64Max(1<<63-1).Draw(t, "began"), rapid.Bool().Draw(t, "shared")}
	}
	run := func(s string) structure.RunID { return structure.DeriveID[structure.RunID](s) }
	context := func(s string) structure.ContextID { return structure.DeriveID[structure.ContextID](s) }
	thread := func(s string) structure.ThreadID { return structure.DeriveID[structure.ThreadID](s) }
	block := func(s string) content.ID { return content.Sum([]byte(s)) }
	l := &Set{
		Until:       number(),
		runs:        numbered(ids(t, "runs", run), func() Run { return Run{number(), number()} }),
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

func TestReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawSet(t)
		got, store, err := decoded(t, encoded(t, l))
		require.NoError(t, err)
		require.Equal(t, [16]byte{1}, store)
		requireEqualSets(t, l, got)
	})
}

// Any bytes, with a right checksum or not, are read as a live set or refused.
func FuzzRead(f *testing.F) {
	l := newSet()
	l.runs[structure.RunID{1}] = Run{1, 2}
	l.contents.add(0)
	l.deadRuns[structure.RunID{2}] = structure.SpanRef{}
	f.Add(encoded(f, l))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for range 2 {
			got, _, err := decoded(t, b)
			switch {
			case err == nil:
				again, _, err := decoded(t, encoded(t, got))
				require.NoError(t, err)
				requireEqualSets(t, got, again)
			default:
				require.True(t, errors.Is(err, backend.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), "%v", err)
			}
			if len(b) >= 4 {
				b = binary.LittleEndian.AppendUint32(b[:len(b)-4:len(b)-4], crc32.Checksum(b[:len(b)-4], castagnoli))
			}
		}
	})
}

func TestGolden(t *testing.T) {
	l := newSet()
	l.Until = 300
	l.runs[structure.RunID{1}] = Run{2, 3}
	l.contents.add(4)
	l.threads[structure.ThreadID{5}] = struct{}{}
	l.contexts[structure.ContextID{6}] = creation{commit: 25}
	l.remnants[structure.ContextID{26}] = creation{27, true}
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

// Reading many hashes in the order of another table takes linear time.
func TestLargeSetReadsBack(t *testing.T) {
	l, random := newSet(), rand.New(rand.NewPCG(4, 9))
	for range 300_000 {
		l.contents.add(random.Uint64())
	}
	got, _, err := decoded(t, encoded(t, l))
	require.NoError(t, err)
	requireEqualSets(t, l, got)
}
