package pack

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure/structuretest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// salvaged returns what is left of a pack, and the reasons why the rest is missing.
func salvaged(t require.TestingT, b []byte) (frames []Frame, missing []error) {
	p, err := OpenDamaged(&memory{b}, int64(len(b)), "salvaged", NewCache(1<<20))
	require.NoError(t, err)
	for f, err := range p.Salvage() {
		if err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
			missing = append(missing, err)
			continue
		}
		frames = append(frames, f)
	}
	return frames, missing
}

// whole returns the commits of a pack that end before an offset, and those that do not.
func whole(t require.TestingT, p *File, frames []Frame, offset int64) (saved []Frame) {
	rows, err := p.table()
	require.NoError(t, err)
	at := 0
	for i := range rows {
		if rows[i].FileEnd() > offset {
			break
		}
		at = int(rows[i].Commit) + rows[i].Commits - 1
		if rows[i].Until > 0 {
			at--
		}
	}
	return frames[:at]
}

// A pack that is cut anywhere loses the chapters that are cut, and no other.
func TestCutAnywhere(t *testing.T) {
	shrink(t)
	rapid.Check(t, func(t *rapid.T) {
		frames := framesOf(t, 7, rapid.SliceOfN(structuretest.Commits(), 2, 30).Draw(t, "commits"))
		p := write(t, frames, nil)
		b := p.src.(*memory).b
		for _, size := range campaign.Sample(len(b)-1, 60) {
			if size < layout.HeaderSize {
				_, err := OpenDamaged(&memory{b[:size]}, int64(size), "salvaged", NewCache(1<<20))
				require.ErrorIs(t, err, backend.ErrCorrupt)
				continue
			}
			saved, missing := salvaged(t, b[:size])
			want := whole(t, p, frames, int64(size))
			require.Len(t, saved, len(want), "cut to %d of %d bytes", size, len(b))
			for i := range want {
				want, got := want[i], saved[i]
				want.ID, got.ID = 0, 0 // only the table has it
				require.Equal(t, want, got, "cut to %d of %d bytes", size, len(b))
			}
			if len(saved) < len(frames) {
				require.NotEmpty(t, missing)
			}
		}
	})
}

// The chapters of a pack whose table is destroyed are found, and those after a damaged head; a pack that
// is not dense needs its first one.
func TestDamagedTableAndHead(t *testing.T) {
	shrink(t)
	for _, dense := range []bool{false, true} {
		frames := framesOf(t, 7, exampleCommits(30))
		m := &memory{}
		w := NewWriter(m, layout.Header{First: 1, Last: frames[len(frames)-1].Segment, FirstCommit: 1, Store: [16]byte{7}, Dense: dense}, nil)
		for _, f := range frames {
			require.NoError(t, w.Add(f))
		}
		_, err := w.Finish()
		require.NoError(t, err)
		w.Close()
		p, err := Open(m, int64(len(m.b)), "sound", NewCache(1<<20))
		require.NoError(t, err)
		rows, err := p.table()
		require.NoError(t, err)
		require.Greater(t, len(rows), 4)

		b := bytes.Clone(m.b)
		for i := range p.foot.TableSize {
			b[p.foot.TableAt+int64(i)] ^= 0xff
		}
		saved, missing := salvaged(t, b)
		require.Len(t, saved, len(frames))
		require.Len(t, missing, 1, "the table")

		for damaged := range 3 {
			b := bytes.Clone(m.b[:p.foot.TableAt])
			b[rows[damaged].Offset+3] ^= 1
			saved, missing := salvaged(t, b)
			require.NotEmpty(t, missing)
			if damaged == 0 && !dense {
				require.Empty(t, saved)
				continue
			}
			require.NotEmpty(t, saved)
			require.Less(t, len(saved), len(frames))
			require.EqualValues(t, len(frames), saved[len(saved)-1].Number)
			for _, f := range saved {
				want := frames[f.Number-1]
				want.ID, f.ID = 0, 0
				require.Equal(t, want, f)
			}
		}
	}
}

// A pack without an end that claims very many tiny chapters, none of them whole, with something between them, takes
// memory in proportion to its size, and reports the first of the gaps.
func TestManyChaptersInLittle(t *testing.T) {
	const n = 5_000
	h := layout.Header{First: 1, Last: 1, FirstCommit: 1, LastCommit: n}
	var b bytes.Buffer
	b.Write(h.Encode())
	r := layout.ChapterRow{Commit: 1, ID: 1, Segment: 1, Commits: 1, Offset: layout.HeaderSize}
	r.Parts[layout.PartColumns].Size = crc32.Size + 1
	for range n {
		head := r.EncodeHead(h)
		b.Write(head)
		b.Write(make([]byte, crc32.Size+2))
		r.Commit, r.Offset = r.Commit+1, int64(b.Len())
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p, err := OpenDamaged(&memory{b.Bytes()}, int64(b.Len()), "hostile", NewCache(1<<20))
	require.NoError(t, err)
	gaps, peak := 0, uint64(0)
	for _, err := range p.Salvage() {
		require.ErrorIs(t, err, backend.ErrCorrupt)
		if gaps++; gaps%2000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc)
		}
	}
	require.Len(t, p.rows, n)
	require.Less(t, gaps, n+maxGaps+3)
	require.Less(t, peak-min(peak, before.HeapAlloc), uint64(24*b.Len()+4<<20))
}

// failing is a disk that does not return some sectors.
type failing struct {
	memory
	from, to int64
}

var errSector = errors.New("input/output error")

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	if at < f.to && at+int64(len(b)) > f.from {
		return 0, errSector
	}
	return f.memory.ReadAt(b, at)
}

// A pack of which the disk does not return the end, or part of it and the end is cut, loses what cannot be read.
func TestUnreadableSectors(t *testing.T) {
	shrink(t)
	frames := framesOf(t, 7, exampleCommits(60))
	p := write(t, frames, nil)
	b := p.src.(*memory).b
	rows, err := p.table()
	require.NoError(t, err)
	require.Greater(t, len(rows), 4)
	salvage := func(src io.ReaderAt, size int) (saved int) {
		p, err := OpenDamaged(src, int64(size), "salvaged", NewCache(1<<20))
		require.NoError(t, err)
		for _, err := range p.Salvage() {
			if err == nil {
				saved++
			}
		}
		return saved
	}
	end := &failing{memory{b}, int64(len(b)) - 80, int64(len(b))}
	require.Equal(t, len(frames), salvage(end, len(b)), "only the end of the pack cannot be read")

	middle := rows[2]
	inside := &failing{memory{b[:len(b)-100]}, middle.Offset, middle.Offset + 1}
	saved := salvage(inside, len(b)-100)
	require.Less(t, saved, len(frames))
	require.GreaterOrEqual(t, saved, rows[2].Commits-1, "those before it")
	require.Greater(t, saved, int(rows[2].Commit)-1, "and some of those after it")
}
