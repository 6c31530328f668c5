package journal

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// salvaged returns the numbers of the salvaged commits.
func salvaged(t *testing.T, fsys vfs.FS, want [][]byte) (numbers []uint64, losses []LostPart) {
	t.Helper()
	last, err := Salvage(fsys, dir, func(_ [16]byte, f Frame) error {
		require.Equal(t, want[f.Number-1], f.Payload)
		numbers = append(numbers, f.Number)
		return nil
	}, func(l LostPart) { losses = append(losses, l) })
	require.NoError(t, err)
	require.LessOrEqual(t, last, uint64(len(want)))
	return numbers, losses
}

func numbersBut(n int, without ...uint64) (numbers []uint64) {
	for i := uint64(1); i <= uint64(n); i++ {
		if len(without) == 0 || i < without[0] || i > without[len(without)-1] {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// A changed byte loses only its frame.
func TestSalvageEveryByte(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(10, 200, 0, 90, 31)
	frames := appendAll(t, j, want...)
	require.NoError(t, j.Close())
	name := segments(fsys)[0]
	clean := readFile(t, fsys, name)
	numbers, losses := salvaged(t, fsys, want)
	require.Equal(t, numbersBut(5), numbers)
	require.Empty(t, losses)
	f, err := fsys.OpenRW(name)
	require.NoError(t, err)
	defer f.Close()
	for at := headerSize; at < len(clean); at++ {
		_, err := f.WriteAt([]byte{clean[at] ^ 0x41}, int64(at))
		require.NoError(t, err)
		numbers, losses = salvaged(t, fsys, want)
		expected := numbersBut(5)
		for _, frame := range frames {
			if int64(at) >= frame.Position.Offset && int64(at) < frame.End {
				expected = numbersBut(5, frame.Number)
			}
		}
		require.Equal(t, expected, numbers, at)
		require.Len(t, losses, 1, at)
		require.LessOrEqual(t, losses[0].Offset, int64(at))
		require.Greater(t, losses[0].Offset+losses[0].Length, int64(at))
		_, err = f.WriteAt(clean[at:at+1], int64(at))
		require.NoError(t, err)
	}
	_, err = f.WriteAt([]byte{clean[41] ^ 1}, 41) // the salt
	require.NoError(t, err)
	numbers, losses = salvaged(t, fsys, want)
	require.Empty(t, numbers)
	require.Len(t, losses, 1)
}

// badSectors is a file system with unreadable places.
type badSectors struct {
	vfs.FS
	from, to int64
}

type badFile struct {
	vfs.File
	of badSectors
}

func (b badSectors) Open(name string) (vfs.File, error) {
	f, err := b.FS.Open(name)
	return badFile{f, b}, err
}

func (f badFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.of.to && off+int64(len(p)) > f.of.from {
		return 0, fmt.Errorf("sector: %w", io.ErrUnexpectedEOF)
	}
	return f.File.ReadAt(p, off)
}

// An unreadable sector loses only the frames that overlap it.
func TestSalvageAroundBadSectors(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	o.SegmentSize = 4 << 20
	j := open(t, o)
	want := payloads()
	for i := range 3000 {
		want = append(want, payload(i, 1000))
	}
	frames := appendAll(t, j, want...)
	require.NoError(t, j.Close())
	bad := badSectors{fsys, 1<<20 + 5000, 1<<20 + 5010}
	numbers, losses := salvaged(t, bad, want)
	var lost []uint64
	sector := int64(1<<20 + 4096)
	for _, f := range frames {
		if f.Position.Offset < sector+sectorRead && f.End > sector {
			lost = append(lost, f.Number)
		}
	}
	require.Equal(t, numbersBut(3000, lost...), numbers)
	require.Len(t, losses, 2) // the sector, and the frames
	require.Equal(t, sector, losses[0].Offset)
	require.EqualValues(t, sectorRead, losses[0].Length)
}

// Missing segments and packs lose only their own commits.
func TestSalvageMissingSegments(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	o.SegmentSize = 4 << 10
	j := open(t, o)
	want := payloads()
	for i := range 40 {
		want = append(want, payload(i, 500))
	}
	frames := appendAll(t, j, want...)
	require.NoError(t, j.Close())
	names := segments(fsys)
	require.Greater(t, len(names), 4)
	require.NoError(t, fsys.Remove(names[0]))
	require.NoError(t, fsys.Remove(names[2]))
	var expected []uint64
	for _, f := range frames {
		if f.Position.Segment != 1 && f.Position.Segment != 3 {
			expected = append(expected, f.Number)
		}
	}
	numbers, losses := salvaged(t, fsys, want)
	require.Equal(t, expected, numbers)
	require.Empty(t, losses, "a missing file is not reported as a loss")
}

// FuzzSalvage salvages a segment of any bytes: commits come in order, each once, and
// every byte is in a frame, lost, or zero at the end.
func FuzzSalvage(f *testing.F) {
	h := goldenHeader()
	h.segment, h.first = 1, 1
	var s segment
	s.init(h)
	var whole []byte
	for i, body := range payloads(0, 10, 200, 30) {
		whole, _ = appendFrame(whole, s.crc, uint64(i+1), uint64(i/2), false, body, nil)
	}
	f.Add([]byte{}, 0)
	f.Add(whole, 0)
	f.Add(whole, 40)
	f.Add(append(whole[:30:30], whole...), 3)
	f.Add(append(append([]byte("damaged"), whole[12:]...), make([]byte, 100)...), 9)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		fsys := crashfs.New()
		require.NoError(t, fsys.MkdirAll(dir))
		content := append(h.encode(), b...)
		if cut > 0 && cut < len(content) {
			content[cut] ^= 1
		}
		for n := range uint32(2) {
			file, err := fsys.Create(dir + "/" + segmentName(n+1))
			require.NoError(t, err)
			require.NoError(t, file.Close())
			require.NoError(t, fsys.WriteFile(dir+"/"+segmentName(n+1), content))
		}
		last, bytes := uint64(0), int64(0)
		_, err := Salvage(fsys, dir, func(_ [16]byte, f Frame) error {
			require.Greater(t, f.Number, last)
			last = f.Number
			bytes += f.End - f.Position.Offset
			return nil
		}, func(l LostPart) {
			require.NotEmpty(t, l.What)
			bytes += l.Length
		})
		if err != nil {
			require.ErrorIs(t, err, backend.ErrNewerFormat)
		}
		require.LessOrEqual(t, bytes, int64(2*len(content)))
	})
}
