package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A damaged block anywhere loses nothing: everything can be read, the file is reported as
// damaged, and data is decoded as often as in a sound file.
func TestDamagedBlockIsMended(t *testing.T) {
	shrink(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, m := range samples(t) {
		sound, err := Open(&memory{m.b}, int64(len(m.b)), "a.pack", NewCache(64<<20))
		require.NoError(t, err)
		want := framesIn(t, sound)
		require.NoError(t, sound.CheckParts(t.Context()))
		end := int(sound.foot.ParityAt(sound.size))
		size := layout.ParitySize(int64(end))
		for _, n := range campaign.Sample(len(m.b), 120) {
			at := n - 1
			b := bytes.Clone(m.b)
			b[at] ^= 1 << random.IntN(8)
			if random.IntN(2) == 0 && at < end { // more of the same block
				for i := at &^ (size - 1); i < min((at|(size-1))+1, end); i++ {
					b[i] = byte(random.Uint32())
				}
			}
			p, err := Open(&memory{b}, int64(len(b)), "a.pack", NewCache(64<<20))
			require.NoError(t, err, "byte %d of %d", at, len(b))
			require.Equal(t, sound.Header, p.Header)
			require.Equal(t, want, framesIn(t, p), "byte %d", at)
			require.NoError(t, p.CheckSums())
			require.NoError(t, check(p))
			require.Equal(t, sound.decoded.Load(), p.decoded.Load())
			require.Equal(t, sound.expanded.Load(), p.expanded.Load())
			require.ErrorIs(t, p.CheckParts(t.Context()), backend.ErrCorrupt, "byte %d", at)
		}
	}
}

func framesIn(t *testing.T, p *File) (frames []Frame) {
	t.Helper()
	for f, err := range p.Frames(0, 0) {
		require.NoError(t, err)
		frames = append(frames, f)
	}
	return frames
}

// Damage of two blocks cannot be repaired. It affects only what is in them, and is
// determined about once.
func TestDamageIsRemembered(t *testing.T) {
	shrink(t)
	for _, m := range samples(t) {
		sound, err := Open(m, int64(len(m.b)), "a.pack", NewCache(1<<20))
		require.NoError(t, err)
		want := map[uint64]Frame{}
		for _, f := range framesIn(t, sound) {
			want[f.Number] = f
		}
		rows, err := sound.table()
		require.NoError(t, err)
		for n, r := range rows {
			for _, at := range r.Parts {
				if at.Size == 0 {
					continue
				}
				b := bytes.Clone(m.b)
				b[at.Offset] ^= 1
				b[sound.foot.ParityAt(sound.size)] ^= 1 // so that nothing can be repaired
				p, err := Open(&memory{b}, int64(len(b)), "a.pack", NewCache(64<<20))
				require.NoError(t, err)
				read := func() (missing int) {
					missing = len(want)
					for f, err := range p.Salvage() {
						if err != nil {
							require.ErrorIs(t, err, backend.ErrCorrupt)
							continue
						}
						require.Equal(t, want[f.Number], f)
						missing--
					}
					return missing
				}
				missing := read()
				require.NotZero(t, missing, "chapter %d", n)
				decoded, expanded := p.decoded.Load(), p.expanded.Load()
				for range 3 {
					require.Equal(t, missing, read())
				}
				require.Equal(t, decoded, p.decoded.Load())
				require.Equal(t, expanded, p.expanded.Load())
			}
		}
	}
}

// hollow is a file of any size with zeros except at its end.
type hollow struct {
	size int64
	tail []byte
	read int64
}

func (h *hollow) ReadAt(b []byte, at int64) (int, error) {
	h.read += int64(len(b))
	clear(b)
	if from := h.size - int64(len(h.tail)); at+int64(len(b)) > from {
		copy(b[max(from-at, 0):], h.tail[max(at-from, 0):])
	}
	return len(b), nil
}

// A right footer with false claims causes no reads or allocations.
func TestHostileFooters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(0, 1<<12), rapid.Int64Range(0, 1<<62)).Draw(t, "size")
		number := rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 4, 64, layout.MaxParity, 1 << 28, 1<<32 - 1}))
		f := layout.Footer{
			TableAt:   rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, max(size, 1))).Draw(t, "offset"),
			TableSize: number.Draw(t, "length"), TableSum: number.Draw(t, "sum"), DirectorySize: number.Draw(t, "finds"), ParitySize: number.Draw(t, "parity"),
			HeaderSum: layout.Sum(layout.Header{First: 1, Last: 1, FirstCommit: 1}.Encode()),
		}
		h := &hollow{size: size, tail: append(f.Encode(), f.Encode()...)}
		_, err := Open(h, size, "hostile.pack", NewCache(1<<20))
		require.ErrorIs(t, err, backend.ErrCorrupt)
		if !f.Fits(size) || size > layout.MaxFile {
			require.LessOrEqual(t, h.read, int64(layout.HeaderSize+layout.TailSize))
		}
	})
}
