package journal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// closedJournal creates a journal of several segments that was closed, reopened
// and closed again, so that it has marks inside and at the end.
func closedJournal(t *testing.T) (fsys *crashfs.FS, want [][]byte, ends []Position) {
	t.Helper()
	fsys = crashfs.New()
	want = payloads(30, 1500, 40, 2600, 0, 7, 90, 60, 25, 11)
	for _, part := range [][][]byte{want[:5], want[5:7], want[7:]} {
		j := open(t, options(fsys))
		for _, f := range appendAll(t, j, part...) {
			ends = append(ends, Position{Segment: f.Position.Segment, Offset: f.End})
		}
		require.NoError(t, j.Close())
	}
	require.Len(t, segments(fsys), 2)
	return fsys, want, ends
}

// copyOf returns a file system with the same files, all durable.
func copyOf(t *testing.T, fsys *crashfs.FS) *crashfs.FS {
	t.Helper()
	to := crashfs.New()
	require.NoError(t, to.MkdirAll(dir))
	for _, name := range fsys.Names() {
		f, err := to.Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, to.WriteFile(name, readFile(t, fsys, name)))
	}
	return to
}

// hints are possible durable positions from an index.
func hints(ends []Position) map[string]Options {
	last := len(ends) - 1
	at := func(i int) Options { return Options{Durable: uint64(i + 1), DurableEnd: ends[i]} }
	return map[string]Options{
		"nothing known":    {},
		"all known":        at(last),
		"some known":       at(last - 2),
		"the place is not": {Durable: uint64(last + 1)},
		"far behind":       at(1),
	}
}

//test:norace
func TestEveryFlippedByteIsFound(t *testing.T) {
	fsys, want, ends := closedJournal(t)
	for name, hint := range hints(ends) {
		t.Run(name, func(t *testing.T) {
			every := 20
			if name == "nothing known" || name == "all known" {
				every = 4
			}
			damaged := copyOf(t, fsys)
			for segment, file := range segments(fsys) {
				b := readFile(t, fsys, file)
				for _, n := range campaign.Sample(len(b), len(b)/every) {
					i := n - 1
					hurt := bytes.Clone(b)
					hurt[i] ^= byte(1 + i%255)
					require.NoError(t, damaged.WriteFile(file, hurt))
					lastMark := segment == 1 && int64(i) >= ends[len(ends)-1].Offset
					requireFound(t, damaged, hint, file, i, want, lastMark)
					require.NoError(t, damaged.WriteFile(file, b))
				}
			}
		})
	}
}

// requireFound requires the flipped byte at offset i to be reported, and nothing
// wrong to be read. The last mark carries no data and may be cut.
func requireFound(t *testing.T, fsys *crashfs.FS, hint Options, file string, i int, want [][]byte, lastMark bool) {
	o := options(fsys)
	o.Durable, o.DurableEnd, o.ReadOnly = hint.Durable, hint.DurableEnd, true
	before := fsys.Ops()
	for _, o.ReadOnly = range []bool{true, false} {
		j, err := Open(dir, o)
		newer := errors.Is(err, backend.ErrNewerFormat) // the damaged byte is in the version
		if newer {
			require.True(t, i >= 8 && i < 12, "byte %d of %s", i, file)
			continue
		}
		if err != nil {
			require.False(t, lastMark, "byte %d of %s", i, file)
			require.Equal(t, file, corruption(t, err).File, "byte %d", i)
			require.LessOrEqual(t, corruption(t, err).Offset, int64(i))
			require.Equal(t, before, fsys.Ops(), "a damaged journal is not written")
			continue
		}
		got, readErr := stored(j)
		requirePayloads(t, want[:len(got)], got)
		found := errors.Join(readErr, j.Damage())
		if lastMark {
			require.NoError(t, found)
			require.Len(t, got, len(want))
		} else {
			require.Error(t, found, "byte %d of %s was not reported", i, file)
			corrupt := corruption(t, found)
			require.Equal(t, file, corrupt.File)
			require.LessOrEqual(t, corrupt.Offset, int64(i))
		}
		if o.ReadOnly {
			require.NoError(t, j.Close())
			require.Equal(t, before, fsys.Ops())
		}
		require.NoError(t, j.Close())
	}
}

func TestEveryShorterJournalIsFound(t *testing.T) {
	fsys, want, ends := closedJournal(t)
	files := segments(fsys)
	o := options(nil)
	o.Durable, o.DurableEnd = uint64(len(want)), ends[len(ends)-1]

	for _, size := range []int64{0, 10, headerSize, headerSize + 5, ends[7].Offset, ends[8].Offset, ends[9].Offset - 1} {
		damaged := copyOf(t, fsys)
		require.NoError(t, damaged.WriteFile(files[1], readFile(t, fsys, files[1])[:size]))
		before := damaged.Ops()
		o.FS = damaged
		for range 2 { // the second attempt fails too
			_, err := Open(dir, o)
			require.Contains(t, files, corruption(t, err).File)
			require.ErrorContains(t, err, "commit 10 was durable")
			require.Equal(t, before, damaged.Ops(), "size %d", size)
		}
	}
	for _, gone := range [][]string{files, files[1:]} {
		damaged := copyOf(t, fsys)
		for _, name := range gone {
			require.NoError(t, damaged.Remove(name))
		}
		o.FS = damaged
		_, err := Open(dir, o)
		corruption(t, err)
		require.ErrorContains(t, err, "commit 10 was durable")
	}
	for i := range ends[:3] { // a sealed segment that ends with a frame
		damaged := copyOf(t, fsys)
		require.Equal(t, uint32(1), ends[i].Segment)
		require.NoError(t, damaged.WriteFile(files[0], readFile(t, fsys, files[0])[:ends[i].Offset]))
		o := options(damaged)
		j := open(t, o)
		got, err := stored(j)
		if i == 2 { // all that it had
			require.NoError(t, err)
			continue
		}
		require.Equal(t, files[0], corruption(t, err).File)
		requirePayloads(t, want[:i+1], got)
	}
}

func TestMissingAndForeignSegments(t *testing.T) {
	four := func() (*crashfs.FS, [][]byte) {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		want := payloads(3000, 3000, 3000, 3000)
		appendAll(t, j, want...)
		require.NoError(t, j.Close())
		return fsys, want
	}
	t.Run("missing", func(t *testing.T) {
		fsys, want := four()
		files := segments(fsys)
		require.NoError(t, fsys.Remove(files[2]))
		requireDamaged(t, fsys, files[3], want[:2])
	})
	t.Run("of another store", func(t *testing.T) {
		fsys, want := four()
		other, _ := four()
		files := segments(fsys)
		require.NoError(t, fsys.WriteFile(files[2], readFile(t, other, files[2])))
		requireDamaged(t, fsys, files[2], want[:2])
	})
	t.Run("in the place of another", func(t *testing.T) {
		fsys, want := four()
		files := segments(fsys)
		require.NoError(t, fsys.WriteFile(files[1], readFile(t, fsys, files[2])))
		requireDamaged(t, fsys, files[1], want[:1])
	})
	t.Run("without its header", func(t *testing.T) {
		fsys, want := four()
		files := segments(fsys)
		require.NoError(t, fsys.WriteFile(files[2], nil))
		requireDamaged(t, fsys, files[2], want[:2])
	})
	t.Run("first without its header", func(t *testing.T) {
		fsys, _ := four()
		files := segments(fsys)
		require.NoError(t, fsys.WriteFile(files[0], nil))
		for _, readOnly := range []bool{false, true} {
			o := options(fsys)
			o.ReadOnly = readOnly
			_, err := Open(dir, o)
			require.Equal(t, files[0], corruption(t, err).File)
		}
	})
}

// requireDamaged requires a journal to open only for reading, up to the damage.
func requireDamaged(t *testing.T, fsys *crashfs.FS, file string, want [][]byte) {
	t.Helper()
	ops := fsys.Ops()
	_, err := Open(dir, options(fsys))
	require.Equal(t, file, corruption(t, err).File)
	o := options(fsys)
	o.ReadOnly = true
	j := open(t, o)
	require.Equal(t, file, corruption(t, j.Damage()).File)
	require.Equal(t, uint64(len(want)), j.Last())
	requireStored(t, j, want)
	_, err = j.Append([]byte("x"), nil, false)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.NoError(t, j.Close())
	require.Equal(t, ops, fsys.Ops(), "nothing is written")
}

func TestReadOnlyUpToTheDamage(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(100, 200, 300, 400)
	frames := appendAll(t, j, want...)
	require.NoError(t, j.Close())
	name := segments(fsys)[0]
	b := readFile(t, fsys, name)
	b[frames[2].PayloadOffset+5]++
	require.NoError(t, fsys.WriteFile(name, b))
	requireDamaged(t, fsys, name, want[:2])

	o := options(fsys)
	o.ReadOnly = true
	j = open(t, o)
	require.Equal(t, frames[2].Position.Offset, corruption(t, j.Damage()).Offset)
	_, err := j.NewReader().Frame(frames[2].Position)
	corruption(t, err)
}

func TestFileThatShrinksWhileOpen(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	frames := appendAll(t, j, payloads(3000, 3000, 100)...)
	require.NoError(t, fsys.WriteFile(segments(fsys)[0], readFile(t, fsys, segments(fsys)[0])[:200]))
	_, err := stored(j)
	require.Equal(t, int64(200), corruption(t, err).Offset)
	_, err = j.NewReader().Frame(frames[0].Position)
	corruption(t, err)
	_, err = j.NewReader().Frame(frames[1].Position)
	require.NoError(t, err)
}

// A valid frame of another commit is never accepted as the next one.
func TestFrameOfAnotherCommit(t *testing.T) {
	tests := map[string]struct {
		number, durable uint64
		mark            bool
		what            string
	}{
		"skips one":           {number: 4, durable: 1, what: "commit 4 follows commit 2"},
		"repeats one":         {number: 2, durable: 1, what: "commit 2 follows commit 2"},
		"marks another":       {number: 1, durable: 1, mark: true, what: "commit 1 follows commit 2"},
		"knows of later ones": {number: 4, durable: 3, what: "commit 4 follows commit 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fsys := crashfs.New()
			j := open(t, options(fsys))
			want := payloads(10, 20)
			frames := appendAll(t, j, want...)
			salt := j.lastSegment().crc
			appendAll(t, j, payload(3, 4050)) // in a second segment
			require.NoError(t, j.Close())
			files := segments(fsys)
			forged, _ := appendFrame(readFile(t, fsys, files[0]), salt, tc.number, tc.durable, tc.mark, nil, nil)
			require.NoError(t, fsys.WriteFile(files[0], forged))

			j = open(t, options(fsys))
			got, err := stored(j)
			require.ErrorContains(t, err, tc.what)
			require.Equal(t, frames[1].End, corruption(t, err).Offset)
			requirePayloads(t, want, got)
			require.NoError(t, j.Close())

			require.NoError(t, fsys.Remove(files[1])) // so that it is the end
			requireDamaged(t, fsys, files[0], want)
		})
	}
}

func TestSealedSegmentThatIsGone(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	appendAll(t, j, payloads(3000, 3000, 100)...)
	require.NoError(t, j.Close())
	j = open(t, options(fsys))
	require.NoError(t, fsys.Remove(segments(fsys)[0]))
	got, err := stored(j)
	require.Error(t, err, "must not be skipped")
	require.Empty(t, got)
}
