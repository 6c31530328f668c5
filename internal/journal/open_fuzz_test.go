package journal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// FuzzOpen opens a journal of one segment with any bytes after its header, and
// any durable position.
func FuzzOpen(f *testing.F) {
	h := goldenHeader()
	h.segment, h.first = 1, 1
	var s segment
	s.init(h)
	var whole []byte
	for i, body := range payloads(0, 10, 200, 30) {
		whole, _ = appendFrame(whole, s.crc, uint64(i+1), uint64(i/2), false, body, nil)
	}
	second, _ := appendFrame(nil, s.crc, 2, 1, false, []byte("x"), nil)
	marked, _ := appendFrame(bytes.Clone(whole), s.crc, 4, 4, true, nil, nil)
	f.Add([]byte{}, uint64(0), int64(0))
	f.Add(whole, uint64(0), int64(0))
	f.Add(whole, uint64(1), int64(headerSize+10))
	f.Add(whole, uint64(9), int64(headerSize+3))
	f.Add(whole, uint64(50), int64(headerSize+len(whole)))
	f.Add(marked, uint64(4), int64(1<<40))
	f.Add(whole[:len(whole)-1], uint64(0), int64(-1))
	f.Add(whole[5:], uint64(0), int64(0))
	f.Add(append([]byte("damaged"), second...), uint64(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, durable uint64, at int64) {
		fsys := crashfs.New()
		require.NoError(t, fsys.MkdirAll(dir))
		file, err := fsys.Create(dir + "/" + segmentName(1))
		require.NoError(t, err)
		require.NoError(t, file.Close())
		content := append(h.encode(), b...)
		require.NoError(t, fsys.WriteFile(dir+"/"+segmentName(1), content))

		o := options(fsys)
		o.Durable, o.DurableEnd = durable, Position{Segment: 1, Offset: at}
		o.ReadOnly = true
		ops := fsys.Ops()
		damaged, err := Open(dir, o)
		require.NoError(t, err, "its header is good")
		last := damaged.Last()
		for _, err := range damaged.Frames(Position{}) {
			if err != nil { // if the end was taken from the index
				require.ErrorIs(t, err, backend.ErrCorrupt)
			}
		}
		damage := damaged.Damage()
		require.NoError(t, damaged.Close())
		require.Equal(t, ops, fsys.Ops())

		o.ReadOnly = false
		j, err := Open(dir, o)
		if err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
			require.Error(t, damage)
			after, err := fsys.ReadFile(dir + "/" + segmentName(1))
			require.NoError(t, err)
			require.Equal(t, content, after, "a damaged journal is not changed")
			return
		}
		require.NoError(t, damage)
		require.Equal(t, last, j.Last())
		_, before := stored(j)
		frame, err := j.Append([]byte("more"), nil, false)
		require.NoError(t, err)
		require.Equal(t, last+1, frame.Number)
		require.NoError(t, j.Close())
		if before != nil {
			return
		}
		o.Durable, o.DurableEnd = 0, Position{}
		j, err = Open(dir, o)
		require.NoError(t, err)
		require.Equal(t, last+1, j.Last())
		require.NoError(t, j.Close())
	})
}
