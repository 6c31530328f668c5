package pack

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
)

// A head is only one at its place in its pack.
func TestHeadsDoNotMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header{First: 1, Last: 9, FirstCommit: 5, LastCommit: 500, Store: [16]byte{1}, Salt: [4]byte{2}}
		r := row{commit: 7, commits: rapid.IntRange(1, 300).Draw(t, "commits"), segment: 3, end: 64, id: 1, offset: rapid.Int64Range(64, 1<<40).Draw(t, "offset")}
		r.parts[partColumns].size, r.columns = 12, 40
		b := r.encodeHead(h)
		r.head = int64(len(b))
		r.layOut()
		is, ok := decodeHead(b, r.offset, h)
		require.True(t, ok)
		require.Equal(t, r, is)
		_, ok = decodeHead(b, r.offset+rapid.Int64Range(1, 1<<30).Draw(t, "moved"), h)
		require.False(t, ok)
		other := h
		other.Salt[3]++
		_, ok = decodeHead(b, r.offset, other)
		require.False(t, ok)
		other = h
		other.Store[9]++
		_, ok = decodeHead(b, r.offset, other)
		require.False(t, ok)
		for n := range len(b) {
			_, ok = decodeHead(b[:n], r.offset, h)
			require.False(t, ok)
		}
	})
}

// A pack with something that this program does not know is refused as a newer one.
func TestUnknownFlags(t *testing.T) {
	h := Header{First: 1, Last: 1, FirstCommit: 1, LastCommit: 3}
	b := h.encode()
	for _, at := range []int{52, 57, 59} {
		b := bytes.Clone(b)
		b[at] |= 0x40
		_, err := decodeHeader(b)
		require.ErrorContains(t, err, "checksum")
		binary.LittleEndian.PutUint32(b[60:], checksum(b[:60]))
		if _, err = decodeHeader(b); at == 52 {
			require.ErrorIs(t, err, backend.ErrNewerFormat)
		} else {
			require.Error(t, err)
		}
	}
}

func FuzzDecodeHead(f *testing.F) {
	h := Header{First: 1, Last: 9, FirstCommit: 5, LastCommit: 500, Store: [16]byte{1}}
	for _, r := range []row{
		{commit: 5, commits: 3, segment: 1, id: 1},
		{commit: 9, segment: 2, end: 700, id: 40, body: 9, bodies: 3, until: 900, rest: &rest{start: 600, begin: 30, run: 7, seq: 12}},
	} {
		f.Add(r.encodeHead(h), int64(64))
	}
	f.Fuzz(func(t *testing.T, b []byte, offset int64) {
		if len(b) > 5 && int(b[0])+5 <= len(b) { // behind the checksum
			end := int(b[0]) + 1
			binary.LittleEndian.PutUint32(b[end:], crc32.Update(h.headStart(offset), castagnoli, b[:end]))
		}
		r, ok := decodeHead(b, offset, h)
		if !ok {
			return
		}
		require.True(t, r.possible(h))
		require.LessOrEqual(t, r.commit+uint64(r.commits)-1, h.LastCommit)
		again, ok := decodeHead(r.encodeHead(h), offset, h)
		require.True(t, ok)
		again.head = r.head
		again.layOut()
		require.Equal(t, r, again)
	})
}
