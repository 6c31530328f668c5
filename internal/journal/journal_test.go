//test:race

package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

func TestAppendAndReopen(t *testing.T) {
	files := map[string]func(t *testing.T) (string, vfs.FS){
		"memory": func(*testing.T) (string, vfs.FS) { return dir, crashfs.New() },
		"disk":   func(t *testing.T) (string, vfs.FS) { return filepath.Join(t.TempDir(), "a", "journal"), nil },
	}
	want := payloads(0, 1, 500, 5000, 3, 4096, 0, 70_000, 12)
	for name, place := range files {
		t.Run(name, func(t *testing.T) {
			path, fsys := place(t)
			j, err := Open(path, options(fsys))
			require.NoError(t, err)
			require.Zero(t, j.Last())
			require.Zero(t, j.Durable())
			require.Equal(t, Position{Segment: 1, Offset: headerSize}, j.End())
			appendAll(t, j, want...)
			requireStored(t, j, want)
			id := j.StoreID()
			require.NotZero(t, id)
			require.NoError(t, j.Close())

			want := want
			for range 3 {
				j, err = Open(path, options(fsys))
				require.NoError(t, err)
				require.Equal(t, id, j.StoreID())
				require.NoError(t, j.Damage())
				require.Equal(t, uint64(len(want)), j.Last())
				require.Equal(t, uint64(len(want)), j.Durable())
				requireStored(t, j, want)
				more := payload(len(want)+1, 900)
				appendAll(t, j, more)
				want = append(want[:len(want):len(want)], more)
				requireStored(t, j, want)
				require.NoError(t, j.Close())
			}
		})
	}
}

func TestEmptyJournalKeepsItsStoreID(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	id := j.StoreID()
	require.NoError(t, j.Close())
	j = open(t, options(fsys))
	require.Equal(t, id, j.StoreID())
	requireStored(t, j, nil)
	require.NoError(t, j.Close())
	require.Len(t, readFile(t, fsys, segments(fsys)[0]), headerSize, "no commit, no mark")
}

func TestAppendReturnsWhereTheFrameIs(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(10, 2000, 1900, 700)
	frames := appendAll(t, j, want...)
	r := j.NewReader()
	for i, f := range frames {
		got, err := r.Frame(f.Position)
		require.NoError(t, err)
		require.Equal(t, f.Number, got.Number)
		require.Equal(t, f.End, got.End)
		require.Equal(t, f.PayloadOffset, got.PayloadOffset)
		require.True(t, bytes.Equal(want[i], got.Payload))
		b, err := r.fetch(j.current.Load(), f.Position.Segment, f.PayloadOffset, int64(len(want[i])))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[i], b[:len(want[i])]))
	}
	require.Equal(t, Position{Segment: frames[3].Position.Segment, Offset: frames[3].End}, j.End())
}

func TestSegmentsRollAtTheirSize(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	var want [][]byte
	for i := range 60 {
		want = append(want, payload(i+1, 300))
	}
	want = append(want, payload(61, 9000), payload(62, 10), payload(63, 20_000), payload(64, 20_000))
	frames := appendAll(t, j, want...)
	for i, f := range frames[1:] {
		if f.Position.Segment == frames[i].Position.Segment {
			require.Equal(t, frames[i].End, f.Position.Offset, "frames are contiguous")
			continue
		}
		require.Equal(t, frames[i].Position.Segment+1, f.Position.Segment)
		require.Equal(t, int64(headerSize), f.Position.Offset)
		require.Greater(t, frames[i].End+int64(len(want[i+1]))+frameOverhead, int64(4<<10), "rolled too early")
		require.GreaterOrEqual(t, j.Durable(), uint64(i+1), "sealed segments are durable")
	}
	require.Equal(t, frames[62].Position.Segment+1, frames[63].Position.Segment, "one commit larger than a segment has one for itself")

	var total int64
	for i, name := range segments(fsys) {
		b := readFile(t, fsys, name)
		total += int64(len(b))
		h, err := decodeHeader(b)
		require.NoError(t, err)
		require.Equal(t, uint32(i+1), h.segment)
		require.Equal(t, j.StoreID(), h.store)
		require.Equal(t, name, j.SegmentName(uint32(i+1)))
		if i+1 < len(segments(fsys)) && h.first < 61 {
			require.LessOrEqual(t, len(b), 4<<10)
		}
		require.Equal(t, Position{Segment: uint32(i + 1), Offset: headerSize}, j.Find(h.first))
		require.Equal(t, max(int64(len(b))-headerSize, 0), j.SizeFrom(j.Find(h.first))-j.SizeFrom(Position{Segment: uint32(i + 2)}))
	}
	require.Equal(t, total, j.Size())
	require.Equal(t, total-int64(len(segments(fsys)))*headerSize, j.SizeFrom(Position{}))
	require.Zero(t, j.SizeFrom(j.End()))
	requireStored(t, j, want)
}

func TestCommitLargerThanASegment(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(9000, 9000, 10)
	frames := appendAll(t, j, want...)
	require.Equal(t, uint32(1), frames[0].Position.Segment, "no segment stays empty")
	require.Equal(t, uint32(2), frames[1].Position.Segment)
	require.Equal(t, uint32(3), frames[2].Position.Segment)
	requireStored(t, j, want)
}

func TestFramesFromAnyPosition(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(100, 3000, 2000, 5000, 0, 1, 3500, 900, 10)
	frames := appendAll(t, j, want...)
	for round := range 2 { // before and after reopening, when segments are closed files
		for i, start := range frames {
			for _, p := range []Position{start.Position, j.Find(start.Number)} {
				var got []uint64
				for f, err := range j.Frames(p) {
					require.NoError(t, err)
					if f.Mark || f.Number < start.Number {
						continue
					}
					got = append(got, f.Number)
					require.True(t, bytes.Equal(want[f.Number-1], f.Payload))
				}
				require.Len(t, got, len(want)-i)
				require.Equal(t, start.Number, got[0])
			}
		}
		for range j.Frames(j.End()) {
			require.Fail(t, "nothing is behind the end")
		}
		for f, err := range j.Frames(Position{}) {
			require.NoError(t, err)
			require.Equal(t, uint64(1), f.Number)
			break
		}
		require.Equal(t, frames[0].Position, j.Find(0))
		require.Equal(t, j.End().Segment, j.Find(1_000_000).Segment)
		if round == 0 {
			require.NoError(t, j.Close())
			j = open(t, options(fsys))
		}
	}
}

func TestFramesEndWhereTheJournalEnded(t *testing.T) {
	j := open(t, options(crashfs.New()))
	want := payloads(10, 20)
	appendAll(t, j, want...)
	frames := j.Frames(Position{})
	appendAll(t, j, payload(3, 5000), payload(4, 10))
	var n int
	for _, err := range frames {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
}

func TestReadAheadEqualsSingleReads(t *testing.T) {
	o := options(crashfs.New())
	o.SegmentSize = 3 << 20
	j := open(t, o)
	sizes := []int{0, 1, firstRead - 1, firstRead, firstRead + 1, maxRead, maxRead + 1, 3 * maxRead}
	for i := range 300 {
		sizes = append(sizes, (i*7919)%20_000)
	}
	frames := appendAll(t, j, payloads(sizes...)...)
	ahead := j.NewReader()
	for _, f := range frames {
		single, err := j.NewReader().Frame(f.Position)
		require.NoError(t, err)
		got, err := ahead.Frame(f.Position)
		require.NoError(t, err)
		require.Equal(t, single.Number, got.Number)
		require.Equal(t, single.End, got.End)
		require.True(t, bytes.Equal(single.Payload, got.Payload))
	}
	for i := range frames { // and in an order that defeats read-ahead
		f := frames[(i*53)%len(frames)]
		got, err := ahead.Frame(f.Position)
		require.NoError(t, err)
		require.Equal(t, f.Number, got.Number)
	}
}

func TestReaderSharesNoMemoryThatChanges(t *testing.T) {
	j := open(t, options(crashfs.New()))
	want := payloads(500, 500, 500, 500, 500, 500, 5000, 500)
	appendAll(t, j, want...)
	var kept []Frame
	for f, err := range j.Frames(Position{}) {
		require.NoError(t, err)
		kept = append(kept, f)
	}
	for i, f := range kept {
		require.True(t, bytes.Equal(want[i], f.Payload))
		_ = append(f.Payload, 0xff) // must not reach the following bytes
	}
	for i, f := range kept {
		require.True(t, bytes.Equal(want[i], f.Payload))
	}
}

func TestReaderAtWrongPositions(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	f := appendAll(t, j, payload(1, 100))[0]
	r := j.NewReader()
	for _, offset := range []int64{-1, 0, headerSize - 1, headerSize + 1, f.End - 1, f.End, f.End + 1, 1 << 40} {
		_, err := r.Frame(Position{Segment: 1, Offset: offset})
		require.Equal(t, segments(fsys)[0], corruption(t, err).File, "offset %d", offset)
	}
	for _, segment := range []uint32{0, 2, 1<<32 - 1} {
		_, err := r.Frame(Position{Segment: segment, Offset: headerSize})
		require.ErrorIs(t, err, backend.ErrNotFound)
	}
	_, err := r.Frame(f.Position)
	require.NoError(t, err, "the reader works after a failure")
}

func TestOlderFormatIsRefusedByName(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		appendAll(t, j, payload(1, 50))
		require.NoError(t, j.Close())
		name := segments(fsys)[0]
		b := readFile(t, fsys, name)
		binary.LittleEndian.PutUint32(b[8:], FormatVersion-1)
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
		require.NoError(t, fsys.WriteFile(name, b))
		o := options(fsys)
		o.ReadOnly = readOnly
		_, err := Open(dir, o)
		require.ErrorIs(t, err, backend.ErrOlderFormat)
		require.NotErrorIs(t, err, backend.ErrCorrupt)
		require.Equal(t, b, readFile(t, fsys, name))
	}
}

func TestNewerFormatIsRefusedByName(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		appendAll(t, j, payloads(3000, 3000)...)
		require.NoError(t, j.Close())
		name := segments(fsys)[1]
		b := readFile(t, fsys, name)
		binary.LittleEndian.PutUint32(b[8:], FormatVersion+1)
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
		require.NoError(t, fsys.WriteFile(name, b))

		o := options(fsys)
		o.ReadOnly = readOnly
		ops := fsys.Ops()
		_, err := Open(dir, o)
		require.ErrorIs(t, err, backend.ErrNewerFormat)
		require.NotErrorIs(t, err, backend.ErrCorrupt)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, fmt.Sprint("journal format ", FormatVersion+1))
		require.ErrorContains(t, err, fmt.Sprint("up to ", FormatVersion))
		require.Equal(t, ops, fsys.Ops(), "nothing is touched")
	}
}

func TestClosedJournal(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		frames := appendAll(t, j, payloads(3000, 3000, 10)...)
		if reopened { // with sealed segments whose files were never opened
			require.NoError(t, j.Close())
			j = open(t, options(fsys))
		}
		r := j.NewReader()
		require.NoError(t, j.Close())
		require.NoError(t, j.Close(), "may be called twice")
		_, err := j.Append([]byte("x"), nil, true)
		require.ErrorIs(t, err, backend.ErrClosed)
		_, err = r.Frame(frames[0].Position)
		require.ErrorIs(t, err, backend.ErrClosed)
		_, err = r.fetch(j.current.Load(), frames[2].Position.Segment, frames[2].Position.Offset, 1)
		require.ErrorIs(t, err, backend.ErrClosed)
		_, err = stored(j)
		require.ErrorIs(t, err, backend.ErrClosed)
		require.NoError(t, j.Sync(3), "they are durable")
		require.Equal(t, uint64(3), j.Last())
	}
}

func TestSyncOfCommitsNotYetAppended(t *testing.T) {
	j := open(t, options(crashfs.New()))
	appendAll(t, j, payloads(10, 10)...)
	require.NoError(t, j.Sync(1_000_000))
	require.Equal(t, uint64(2), j.Durable())
	require.NoError(t, j.Sync(0))
}

func TestReadOnly(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	o.ReadOnly = true
	_, err := Open(dir, o)
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.Zero(t, fsys.Ops(), "nothing is made")

	want := payloads(3000, 3000, 10)
	j := open(t, options(fsys))
	appendAll(t, j, want...)
	require.NoError(t, j.Close())
	ops := fsys.Ops()
	j = open(t, o)
	requireStored(t, j, want)
	require.NoError(t, j.Damage())
	require.NoError(t, j.Sync(3))
	_, err = j.Append([]byte("x"), nil, true)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.NoError(t, j.Close())
	_, err = j.Append([]byte("x"), nil, true)
	require.ErrorIs(t, err, backend.ErrClosed)
	require.Equal(t, ops, fsys.Ops(), "nothing is written")
}

func TestCommitTooLarge(t *testing.T) {
	require.NoError(t, CheckSize(0))
	require.NoError(t, CheckSize(MaxPayload))
	require.ErrorIs(t, CheckSize(MaxPayload+1), backend.ErrTooLarge)
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	fsys := crashfs.New()
	require.NoError(t, fsys.MkdirAll(dir))
	for _, name := range []string{"notes.txt", "1.seg", "0000000000.seg", "0000000009.seg.64.cut"} {
		f, err := fsys.Create(dir + "/" + name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	before := len(fsys.Names())
	want := payloads(3000, 3000)
	j := open(t, options(fsys))
	appendAll(t, j, want...)
	require.NoError(t, j.Close())
	j = open(t, options(fsys))
	requireStored(t, j, want)
	require.Len(t, fsys.Names(), before+2)
}
