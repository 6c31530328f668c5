package lookup

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The directory has the ids of the runs that share a fingerprint.
func TestRunsWithTheSameFingerprint(t *testing.T) {
	var l Builder
	ids := [2]structure.RunID{{0xcc, 0xa4, 1}, {0xbd, 0xd8, 1}}
	for i, id := range ids {
		l.span(uint64(i+1), 0, structure.SpanRef{Run: id, Seq: 1})
	}
	l.span(3, 0, structure.SpanRef{Run: structure.RunID{7}, Seq: 1})
	require.Equal(t, map[uint32]structure.RunID{0: ids[0], 1: ids[1]}, l.shared([]Finger{
		{RunFingerprint(ids[0]), 0}, {RunFingerprint(ids[1]), 1}, {RunFingerprint(structure.RunID{7}), 2},
	}))
	tables, index := l.Encode(1)
	d, err := ReadDirectory(index[:len(index)-4], 0, int64(len(tables)))
	require.NoError(t, err)
	for number, id := range ids {
		got, shares := d.IDOf(uint32(number))
		require.True(t, shares)
		require.Equal(t, id, got)
	}
	_, shares := d.IDOf(2)
	require.False(t, shares)
}

func TestBuckets(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 127, 128, 129, 5000, 100000} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		var fingers []Finger
		for i := range n {
			fingers = append(fingers, Finger{r.Uint32(), uint32(i)})
		}
		for i := range n / 2 {
			fingers[i].Print >>= i % 32 // some buckets are crowded
		}
		var b Buckets
		raw := b.encode(nil, fingers, uint64(n))
		at := 0
		for i, size := range b.offsets {
			if size == 0 {
				continue
			}
			require.NoError(t, b.Read(raw[at:][:size-4], uint64(i), func(f Finger) bool {
				require.Equal(t, fingers[0], f)
				fingers = fingers[1:]
				return true
			}))
			at += int(size)
		}
		require.Empty(t, fingers)
		require.Len(t, raw, at)
		if n == 100000 {
			require.Less(t, len(raw), 5*n)
		}
	}
}

// Lists are read as they were written, and runs that differ in their commits only take a byte each.
func TestListsOfRuns(t *testing.T) {
	h := layout.Header{FirstCommit: 5, LastCommit: 10_000}
	rapid.Check(t, func(t *rapid.T) {
		var list [][]Stretch
		commit := h.FirstCommit
		for range rapid.IntRange(1, runsPerList).Draw(t, "runs") {
			var run []Stretch
			commit += rapid.Uint64Range(0, 3).Draw(t, "skipped")
			next, place := commit, rapid.Uint64Range(1, 2).Draw(t, "place")
			for range rapid.IntRange(1, 2).Draw(t, "stretches") {
				s := Stretch{Commit: next, Commits: rapid.Uint64Range(1, 3).Draw(t, "commits"), Spans: rapid.Uint64Range(1, 3).Draw(t, "spans"), First: place}
				if len(run) == 0 {
					s.Piece = rapid.IntRange(0, 1).Draw(t, "piece")
				}
				next, place = s.Commit+s.Commits+rapid.Uint64Range(0, 2).Draw(t, "gap"), s.Last()+1
				run = append(run, s)
			}
			list = append(list, run)
		}
		b := appendRuns(nil, list, h.FirstCommit)
		got, err := readRuns(b, len(list), h)
		require.NoError(t, err)
		require.Equal(t, list, got)
		_, err = readRuns(b, len(list)+1, h)
		require.ErrorIs(t, err, ErrMalformed)
		_, err = readRuns(b, len(list), layout.Header{FirstCommit: 5, LastCommit: list[len(list)-1][0].Commit - 1})
		require.ErrorIs(t, err, ErrMalformed)
	})
	var list [][]Stretch
	for i := range uint64(runsPerList) {
		list = append(list, []Stretch{{Commit: 5 + i/3, Commits: 1, Spans: 2, First: 1}})
	}
	require.Len(t, appendRuns(nil, list, h.FirstCommit), 6+runsPerList-1)
	_, err := readRuns([]byte{1, 1}, 2, h) // like none
	require.ErrorIs(t, err, ErrMalformed)
}

func FuzzLookup(f *testing.F) {
	var l Builder
	for i := range uint64(300) {
		l.span(i+1, 0, structure.SpanRef{Run: structure.RunID{byte(i % 7)}, Seq: i/7 + 1})
		l.object(binary.BigEndian.AppendUint32(nil, uint32(i*i*77777)), i%9 == 0)
	}
	l.Chapter(int(l.numbers))
	parts, index := l.Encode(1)
	f.Add(parts, index[:len(index)-4])
	f.Add(parts[:len(parts)/3], []byte{0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, parts, index []byte) {
		d, err := ReadDirectory(index, 0, int64(len(parts)))
		if err != nil {
			return
		}
		in := func(at layout.Range) []byte { return parts[at.Offset:][:at.Size] }
		for _, b := range []*Buckets{&d.Content, &d.Runs} {
			for i := range uint64(b.Count()) {
				_ = b.Read(in(b.At(i)), i, func(Finger) bool { return true })
			}
		}
		for i := range d.ListCount() {
			_, _ = d.ReadList(in(d.List(i)), i, layout.Header{FirstCommit: 1, LastCommit: 1 << 20})
		}
	})
}
