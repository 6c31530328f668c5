package layout

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
		r := ChapterRow{Commit: 7, Commits: rapid.IntRange(1, 300).Draw(t, "commits"), Segment: 3, End: 64, ID: 1, Offset: rapid.Int64Range(64, 1<<40).Draw(t, "offset")}
		r.Parts[PartColumns].Size, r.Columns = 12, 40
		b := r.EncodeHead(h)
		r.Head = int64(len(b))
		r.LayOut()
		got, ok := DecodeHead(b, r.Offset, h)
		require.True(t, ok)
		require.Equal(t, r, got)
		_, ok = DecodeHead(b, r.Offset+rapid.Int64Range(1, 1<<30).Draw(t, "moved"), h)
		require.False(t, ok)
		other := h
		other.Salt[3]++
		_, ok = DecodeHead(b, r.Offset, other)
		require.False(t, ok)
		other = h
		other.Store[9]++
		_, ok = DecodeHead(b, r.Offset, other)
		require.False(t, ok)
		for n := range len(b) {
			_, ok = DecodeHead(b[:n], r.Offset, h)
			require.False(t, ok)
		}
	})
}

// A pack with something that this program does not know is refused as a newer one.
func TestUnknownFlags(t *testing.T) {
	h := Header{First: 1, Last: 1, FirstCommit: 1, LastCommit: 3}
	b := h.Encode()
	for _, at := range []int{52, 57, 59} {
		b := bytes.Clone(b)
		b[at] |= 0x40
		_, err := DecodeHeader(b)
		require.ErrorContains(t, err, "checksum")
		binary.LittleEndian.PutUint32(b[60:], Sum(b[:60]))
		if _, err = DecodeHeader(b); at == 52 {
			require.ErrorIs(t, err, backend.ErrNewerFormat)
		} else {
			require.Error(t, err)
		}
	}
}

func FuzzDecodeHead(f *testing.F) {
	h := Header{First: 1, Last: 9, FirstCommit: 5, LastCommit: 500, Store: [16]byte{1}}
	for _, r := range []ChapterRow{
		{Commit: 5, Commits: 3, Segment: 1, ID: 1},
		{Commit: 9, Segment: 2, End: 700, ID: 40, Body: 9, Bodies: 3, Until: 900, Rest: &Rest{FrameStart: 600, RecordsAt: 30, Run: 7, Seq: 12}},
	} {
		f.Add(r.EncodeHead(h), int64(64))
	}
	f.Fuzz(func(t *testing.T, b []byte, offset int64) {
		if len(b) > 5 && int(b[0])+5 <= len(b) { // behind the checksum
			end := int(b[0]) + 1
			binary.LittleEndian.PutUint32(b[end:], crc32.Update(h.headStart(offset), castagnoli, b[:end]))
		}
		r, ok := DecodeHead(b, offset, h)
		if !ok {
			return
		}
		require.True(t, r.possible(h))
		require.LessOrEqual(t, r.Commit+uint64(r.Commits)-1, h.LastCommit)
		again, ok := DecodeHead(r.EncodeHead(h), offset, h)
		require.True(t, ok)
		again.Head = r.Head
		again.LayOut()
		require.Equal(t, r, again)
	})
}
