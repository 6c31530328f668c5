package pack

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure"
)

// The directory has the ids of the runs that share a fingerprint.
func TestRunsWithTheSameFingerprint(t *testing.T) {
	var l lookup
	ids := [2]structure.RunID{{0xcc, 0xa4, 1}, {0xbd, 0xd8, 1}}
	for i, id := range ids {
		l.span(uint64(i+1), 0, structure.SpanRef{Run: id, Seq: 1})
	}
	l.span(3, 0, structure.SpanRef{Run: structure.RunID{7}, Seq: 1})
	require.Equal(t, map[uint32]structure.RunID{0: ids[0], 1: ids[1]}, l.shared([]finger{
		{runFingerprint(ids[0]), 0}, {runFingerprint(ids[1]), 1}, {runFingerprint(structure.RunID{7}), 2},
	}))
	tables, index := l.encode(1)
	d, err := readDirectory(index[:len(index)-4], 0, int64(len(tables)))
	require.NoError(t, err)
	for number, id := range ids {
		is, shares := d.idOf(uint32(number))
		require.True(t, shares)
		require.Equal(t, id, is)
	}
	_, shares := d.idOf(2)
	require.False(t, shares)
}

func TestBuckets(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 127, 128, 129, 5000, 100000} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		var fingers []finger
		for i := range n {
			fingers = append(fingers, finger{r.Uint32(), uint32(i)})
		}
		for i := range n / 2 {
			fingers[i].print >>= i % 32 // some buckets are crowded
		}
		var b buckets
		raw := b.encode(nil, fingers, uint64(n))
		at := 0
		for i, size := range b.offsets {
			if size == 0 {
				continue
			}
			require.NoError(t, b.read(raw[at:][:size-4], uint64(i), func(f finger) bool {
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

func FuzzLookup(f *testing.F) {
	var l lookup
	for i := range uint64(300) {
		l.span(i+1, 0, structure.SpanRef{Run: structure.RunID{byte(i % 7)}, Seq: i/7 + 1})
		l.object(binary.BigEndian.AppendUint32(nil, uint32(i*i*77777)), i%9 == 0)
	}
	l.chapter(int(l.numbers))
	parts, index := l.encode(1)
	f.Add(parts, index[:len(index)-4])
	f.Add(parts[:len(parts)/3], []byte{0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, parts, index []byte) {
		d, err := readDirectory(index, 0, int64(len(parts)))
		if err != nil {
			return
		}
		in := func(at part) []byte { return parts[at.offset:][:at.size] }
		for _, b := range []*buckets{&d.content, &d.runs} {
			for i := range uint64(b.count()) {
				_ = b.read(in(b.at(i)), i, func(finger) bool { return true })
			}
		}
		for i := range d.listCount() {
			_, _ = d.readList(in(d.list(i)), i, Header{FirstCommit: 1, LastCommit: 1 << 20})
		}
	})
}
