package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

// crashed returns a journal of one segment with so many durable commits after
// power loss that kept all other commits too.
func crashed(t *testing.T, durable int, want [][]byte) (*crashfs.FS, []Frame) {
	t.Helper()
	fsys := crashfs.New()
	j := open(t, options(fsys))
	frames := appendAll(t, j, want[:durable]...)
	require.NoError(t, j.Sync(j.Last()))
	frames = append(frames, appendAll(t, j, want[durable:]...)...)
	return fsys.Crash(crashfs.KeepAll()), frames
}

func TestTornTailIsCutAndLogged(t *testing.T) {
	want := payloads(100, 200, 300)
	fsys, frames := crashed(t, 2, want)
	name := segments(fsys)[0]
	whole := readFile(t, fsys, name)
	for size := frames[2].Position.Offset + 1; size < frames[2].End; size++ {
		for _, readOnly := range []bool{true, false} {
			require.NoError(t, fsys.WriteFile(name, whole[:size]))
			o := options(fsys)
			var log logged
			o.Logger, o.ReadOnly = logline.New(slog.LevelDebug, log.add), readOnly
			j := open(t, o)
			require.NoError(t, j.Damage())
			requireStored(t, j, want[:2])
			if readOnly {
				require.Empty(t, log)
				require.NoError(t, j.Close())
				require.Len(t, readFile(t, fsys, name), int(size), "left as it is")
				continue
			}
			require.Len(t, log, 1)
			require.Contains(t, log[0], fmt.Sprintf("bytes=%d", size-frames[2].Position.Offset))
			require.Contains(t, log[0], "commit=2")
			again := payload(77, 250)
			appendAll(t, j, again)
			require.NoError(t, j.Close())
			j = open(t, options(fsys))
			requireStored(t, j, [][]byte{want[0], want[1], again})
			require.NoError(t, j.Close())
		}
	}
	require.Equal(t, []string{name}, fsys.Names())
}

func TestTailOutOfOrderIsCutAndKept(t *testing.T) {
	want := payloads(100, 200, 300, 400, 500)
	fsys, frames := crashed(t, 2, want)
	name := segments(fsys)[0]
	b := readFile(t, fsys, name)
	clear(b[frames[2].Position.Offset:frames[2].End]) // never reached the disk
	require.NoError(t, fsys.WriteFile(name, b))

	o := options(fsys)
	var log logged
	o.Logger = logline.New(slog.LevelDebug, log.add)
	j := open(t, o)
	requireStored(t, j, want[:2])
	kept := fmt.Sprintf("%s.%d.cut", name, frames[2].Position.Offset)
	require.Equal(t, b[frames[2].Position.Offset:], readFile(t, fsys, kept))
	require.Len(t, log, 1)
	require.Contains(t, log[0], kept)
	require.Contains(t, log[0], "out of order")
	require.Contains(t, log[0], "commit=2")

	appendAll(t, j, want[2:]...)
	onDisk := fsys.Crash(crashfs.KeepNone())
	require.Equal(t, b[frames[2].Position.Offset:], readFile(t, onDisk, kept))
	require.Len(t, readFile(t, onDisk, name), int(frames[2].Position.Offset))

	// An existing file of that name is no obstacle.
	fsys = fsys.Crash(crashfs.KeepAll())
	require.NoError(t, fsys.WriteFile(name, b))
	j = open(t, options(fsys))
	requireStored(t, j, want[:2])
	require.Equal(t, b[frames[2].Position.Offset:], readFile(t, fsys, kept))
}

// If the power fails while the journal is opened, the bytes are in the segment
// or in the saved file.
func TestTailOutOfOrderIsNeverLost(t *testing.T) {
	want := payloads(100, 200, 300, 400, 500)
	find := func(disk *crashfs.FS, tail []byte, offset int64) bool {
		for _, name := range disk.Names() {
			b := readFile(t, disk, name)
			if bytes.Equal(b, tail) || int64(len(b)) > offset && bytes.Equal(b[offset:], tail) {
				return true
			}
		}
		return false
	}
	for n := 1; ; n++ {
		fsys, frames := crashed(t, 2, want)
		name := segments(fsys)[0]
		b := readFile(t, fsys, name)
		offset := frames[2].Position.Offset
		clear(b[offset:frames[2].End])
		require.NoError(t, fsys.WriteFile(name, b))
		fsys.CrashAfter(n, 300)
		j, err := Open(dir, options(fsys))
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		for range 30 {
			require.True(t, find(fsys.Crash(crashfs.Random(rng)), b[offset:], offset), "operation %d", n)
			require.True(t, find(fsys.Crash(crashfs.KeepNone()), b[offset:], offset), "operation %d", n)
		}
		if err == nil {
			require.Greater(t, n, 5)
			require.Error(t, j.Close()) // after the crash
			return
		}
	}
}

// A frame that lost bytes is corruption as soon as anything proves that it was
// durable.
func TestEvidenceOfDurability(t *testing.T) {
	want := payloads(100, 200, 300, 400)
	hurt := func(t *testing.T, fsys *crashfs.FS, f Frame) {
		name := segments(fsys)[0]
		b := readFile(t, fsys, name)
		b[f.PayloadOffset]++
		require.NoError(t, fsys.WriteFile(name, b))
	}
	tests := map[string]struct {
		durable, hurt int
		hint          Options
		want          string
	}{
		"no evidence":          {durable: 1, hurt: 2},
		"none behind the last": {durable: 4, hurt: 4},
		"a later frame":        {durable: 2, hurt: 2, want: "the later commit 3 proves"},
		"the index":            {durable: 4, hurt: 4, hint: Options{Durable: 4}, want: "commit 4 was durable"},
		"the index before":     {durable: 4, hurt: 4, hint: Options{Durable: 3}},
		"the first":            {durable: 2, hurt: 1, want: "the later commit 3 proves"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fsys, frames := crashed(t, tc.durable, want)
			hurt(t, fsys, frames[tc.hurt-1])
			o := options(fsys)
			o.Durable, o.DurableEnd = tc.hint.Durable, tc.hint.DurableEnd
			j, err := Open(dir, o)
			if tc.want == "" {
				require.NoError(t, err)
				requireStored(t, j, want[:tc.hurt-1])
				require.NoError(t, j.Close())
				return
			}
			require.ErrorContains(t, err, tc.want)
			corrupt := corruption(t, err)
			require.Equal(t, segments(fsys)[0], corrupt.File)
			require.Equal(t, frames[tc.hurt-1].Position.Offset, corrupt.Offset)
		})
	}
}

// The durable position from the index saves reading, but does not override the
// frames.
func TestWrongHintCutsNothing(t *testing.T) {
	want := payloads(100, 200, 300, 400)
	fsys, frames := crashed(t, 4, want)
	for _, end := range []int64{frames[1].End - 1, frames[1].End + 7, frames[2].End} {
		for _, readOnly := range []bool{true, false} {
			o := options(fsys)
			o.Durable, o.DurableEnd = 2, Position{Segment: 1, Offset: end}
			o.ReadOnly = readOnly
			j := open(t, o)
			requireStored(t, j, want)
			require.NoError(t, j.Close())
		}
	}
}

// An empty segment proves that the commits before it were durable, and stays
// until the damage is handled.
func TestEmptySegment(t *testing.T) {
	want := payloads(100, 3000)
	rolled := func() (*crashfs.FS, []Frame) {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		frames := appendAll(t, j, want...)
		fsys.FailOp(6, errDisk) // after Sync, Create, WriteAt, Sync and SyncDir
		_, err := j.Append(payload(3, 3000), nil, false)
		require.ErrorIs(t, err, errDisk)
		fsys = fsys.Crash(crashfs.KeepNone())
		require.Len(t, segments(fsys), 2)
		require.Len(t, readFile(t, fsys, segments(fsys)[1]), headerSize)
		return fsys, frames
	}
	t.Run("removed", func(t *testing.T) {
		for _, content := range [][]byte{nil, bytes.Repeat([]byte{0}, headerSize), []byte("LINEAGEJ")} {
			fsys, _ := rolled()
			files := segments(fsys)
			if content != nil {
				require.NoError(t, fsys.WriteFile(files[1], content))
			}
			o := options(fsys)
			var log logged
			o.Logger = logline.New(slog.LevelDebug, log.add)
			o.ReadOnly = true
			j := open(t, o)
			requireStored(t, j, want)
			require.Equal(t, files, segments(fsys))
			require.Empty(t, log)
			o.ReadOnly = false
			open(t, o)
			require.Len(t, log, 1)
			require.Contains(t, log[0], files[1])
			require.Equal(t, files[:1], segments(fsys.Crash(crashfs.KeepNone())))
		}
	})
	t.Run("evidence", func(t *testing.T) {
		fsys, frames := rolled()
		files := segments(fsys)
		b := readFile(t, fsys, files[0])
		b[frames[1].PayloadOffset]++
		require.NoError(t, fsys.WriteFile(files[0], b))
		for range 2 {
			_, err := Open(dir, options(fsys))
			require.Equal(t, files[0], corruption(t, err).File)
			require.ErrorContains(t, err, "commit 2 was durable")
		}
	})
	t.Run("alone", func(t *testing.T) {
		fsys, _ := rolled()
		files := segments(fsys)
		require.NoError(t, fsys.Remove(files[0]))
		_, err := Open(dir, options(fsys))
		corruption(t, err)
		require.ErrorContains(t, err, "begins with commit 3")
		require.NoError(t, fsys.WriteFile(files[1], nil)) // then nothing proves that it had any
		j := open(t, options(fsys))
		requireStored(t, j, nil)
		require.Equal(t, files[:1], segments(fsys))
	})
}

// A message may contain a complete frame, even a future one of this journal,
// except for the salt of the segment.
func TestFramesInsideMessages(t *testing.T) {
	for _, other := range []bool{true, false} {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		salt := j.lastSegment().crc
		if other {
			salt++
		}
		forged, _ := appendFrame(nil, salt, 3, 2, false, []byte("forged"), nil)
		want := [][]byte{payload(1, 10), append([]byte("see: "), forged...)}
		frames := appendAll(t, j, want...)
		fsys = fsys.Crash(crashfs.KeepAll())
		j = open(t, options(fsys))
		requireStored(t, j, want)
		require.NoError(t, j.Close())

		// The message's frame is torn, so that its content is searched.
		name := segments(fsys)[0]
		b := readFile(t, fsys, name)[:frames[1].End]
		b[frames[1].PayloadOffset]++
		require.NoError(t, fsys.WriteFile(name, b))
		j, err := Open(dir, options(fsys))
		if !other { // shows that the salt matters
			corruption(t, err)
			continue
		}
		require.NoError(t, err)
		requireStored(t, j, want[:1])
		require.Equal(t, []string{name}, fsys.Names(), "and none was found worth keeping")
		require.NoError(t, j.Close())
	}
}

func TestSaltsDiffer(t *testing.T) {
	seen := map[[8]byte]bool{}
	for range 3 {
		j := open(t, options(crashfs.New()))
		appendAll(t, j, payloads(3000, 3000, 3000)...)
		for _, s := range j.segments {
			require.False(t, seen[s.salt])
			seen[s.salt] = true
		}
	}
	require.Len(t, seen, 9)
}

// A torn tail of many MiB with arbitrary bytes is not taken for corruption.
//
//test:norace
func TestLargeTornTail(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	o.SegmentSize = 64 << 20
	j := open(t, o)
	want := payloads(100)
	appendAll(t, j, want...)
	f := appendAll(t, j, payload(2, 8<<20))[0]
	fsys = fsys.Crash(crashfs.KeepAll())
	name := segments(fsys)[0]
	require.NoError(t, fsys.WriteFile(name, readFile(t, fsys, name)[:f.End-1]))
	o.FS = fsys
	j = open(t, o)
	requireStored(t, j, want)
}

// After a kill, found commits may exist only in the kernel. They and the file
// names are made durable before they are reported as durable.
func TestFoundCommitsAreMadeDurable(t *testing.T) {
	want := payloads(100, 200, 300)
	fsys, _ := crashed(t, 1, want)
	j := open(t, options(fsys))
	require.Equal(t, uint64(3), j.Durable())
	fsys = fsys.Crash(crashfs.KeepNone())
	j = open(t, options(fsys))
	requireStored(t, j, want)
}

// A commit number without confirming frames is checked against the frames.
func TestHintOfAnotherJournal(t *testing.T) {
	want := payloads(100, 200, 300)
	for _, known := range []uint64{2, 4, 1000} {
		fsys, frames := crashed(t, 3, want)
		o := options(fsys)
		o.Durable, o.DurableEnd = known, Position{Segment: 1, Offset: frames[2].End}
		j, err := Open(dir, o)
		if known > 3 {
			corruption(t, err)
			require.ErrorContains(t, err, "but the journal ends with commit 3")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, uint64(3), j.Last())
		require.NoError(t, j.Close())
	}
}
