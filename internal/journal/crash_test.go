package journal

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

// work is deterministic: commits of all sizes, synced or not, new segments and
// reopening. It stops when the power fails, and reopens after an unrecoverable
// failure.
func work(m *model) {
	for i, n := range []int{0, 20, 700, 3, 3000, 50, -1, 1, 4500, 6, 7, -1, 900, 2800, 30, 10} {
		if n < 0 {
			m.reopen(uint64(len(m.payloads) / 2))
			continue
		}
		err := m.append(n)
		if i%4 == 2 {
			err = m.sync(uint64(len(m.payloads)))
		}
		if m.dead() {
			return
		}
		if m.j == nil || err != nil && m.j.sync.failure() != nil {
			m.reopen(m.durable)
		}
	}
}

// outlive crashes m in one way, continues to work and crashes again.
func outlive(m *model, c crashfs.Crash, killed bool, rng *rand.Rand) {
	after := m.crash(c, killed, m.durable)
	_ = after.append(200)
	_ = after.append(3500)
	_ = after.sync(after.durable + 1)
	_ = after.append(10)
	require.GreaterOrEqual(m.t, after.durable, uint64(1))
	if rng.IntN(2) == 0 {
		after.reopen(after.durable)
	}
	after.crash(crashfs.Random(rng), false, after.durable)
	after.crash(crashfs.KeepNone(), false, 0)
}

//test:norace
func TestCrashAtEveryOperation(t *testing.T) {
	for _, how := range []through{calls, memory, both} {
		crashAtEveryOperation(t, how)
	}
}

func crashAtEveryOperation(t *testing.T, how through) {
	disk := crashfs.New()
	work(newModel(t, disk, how))
	ops := disk.Ops()
	require.Greater(t, ops, 40)
	for _, n := range campaign.Sample(ops, 15) {
		t.Run(fmt.Sprint(how, "/", n), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for _, torn := range []int{0, 9, 1000, 1 << 20} {
				disk := crashfs.New()
				disk.CrashAfter(n, torn)
				m := newModel(t, disk, how)
				if !m.dead() {
					work(m)
				}
				require.True(t, m.dead())
				outlive(m, crashfs.KeepNone(), false, rng)
				outlive(m, crashfs.KeepAll(), true, rng)
				for range campaign.Rounds(3) {
					outlive(m, crashfs.Random(rng), false, rng)
				}
			}
		})
	}
}

// The disk has everything that was written up to any byte.
//
//test:norace
func TestCrashAtEveryByte(t *testing.T) {
	disk := crashfs.New()
	m := newModel(t, disk, calls)
	require.NoError(t, m.append(5))
	require.NoError(t, m.sync(1))
	sizes := []int{0, 12, 60, 700, 0, 3}
	for _, n := range sizes {
		require.NoError(t, m.append(n))
	}
	require.Equal(t, len(sizes), disk.UnsyncedOps())
	rng := rand.New(rand.NewPCG(1, 2))
	for k, n := range sizes {
		for torn := range minFrame + n + 1 {
			c := crashfs.KeepPrefix(k, torn)
			after := m.crash(c, false, uint64(torn%2))
			whole := 1 + k
			if torn == minFrame+n {
				whole++
			}
			require.Len(t, after.payloads, whole)
			if torn%50 == 0 {
				outlive(m, c, false, rng)
			}
		}
	}
}

// Every operation fails once, in several ways, followed by a crash.
//
//test:norace
func TestFailureOfEveryOperation(t *testing.T) {
	for _, how := range []through{calls, memory, both} {
		failEveryOperation(t, how)
	}
}

func failEveryOperation(t *testing.T, how through) {
	disk := crashfs.New()
	work(newModel(t, disk, how))
	for _, n := range campaign.Sample(disk.Ops(), 8) {
		rng := rand.New(rand.NewPCG(uint64(n), 2))
		for _, written := range []int{0, 10, 1 << 20} {
			for _, again := range []int{0, 1, 3} { // and another soon after
				disk := crashfs.New()
				disk.ShortWrite(n, written, errDisk)
				if again > 0 {
					disk.ShortWrite(n+again, written, errDisk)
				}
				m := newModel(t, disk, how)
				work(m)
				outlive(m, crashfs.KeepAll(), true, rng)
				outlive(m, crashfs.KeepNone(), false, rng)
				outlive(m, crashfs.Random(rng), false, rng)
			}
		}
	}
}

// Random events in random order.
func TestCrashModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, crashfs.New(), rapid.SampledFrom([]through{calls, memory, both}).Draw(t, "through"))
		sizes := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 1200), rapid.IntRange(3900, 9000))
		t.Repeat(map[string]func(*rapid.T){
			"append":    func(t *rapid.T) { _ = m.append(sizes.Draw(t, "size")) },
			"otherwise": func(t *rapid.T) { m.through = rapid.SampledFrom([]through{calls, memory, both}).Draw(t, "through") },
			"sync":      func(t *rapid.T) { _ = m.sync(rapid.Uint64Range(0, uint64(len(m.payloads))).Draw(t, "number")) },
			"reopen":    func(t *rapid.T) { m.reopen(rapid.Uint64Range(0, 50).Draw(t, "known")) },
			"pack": func(t *rapid.T) {
				m.pack(rapid.IntRange(0, 9).Draw(t, "first"), rapid.IntRange(0, 9).Draw(t, "last"), rapid.Bool().Draw(t, "dense"))
			},
			"fail an operation": func(t *rapid.T) {
				m.fsys.ShortWrite(rapid.IntRange(1, 6).Draw(t, "operation"), rapid.IntRange(0, 5000).Draw(t, "written"), errDisk)
			},
			"make room":  func(*rapid.T) { m.prepareSpace() },
			"fail syncs": func(t *rapid.T) { m.fsys.FailSyncs(errDisk) },
			"mend syncs": func(t *rapid.T) { m.fsys.FailSyncs(nil) },
			"fill the disk": func(t *rapid.T) {
				m.fsys.SetCapacity(m.fsys.Used() + rapid.Int64Range(1, 3000).Draw(t, "room"))
			},
			"empty the disk": func(t *rapid.T) { m.fsys.SetCapacity(0) },
			"power fails soon": func(t *rapid.T) {
				m.fsys.CrashAfter(rapid.IntRange(1, 8).Draw(t, "operations"), rapid.IntRange(0, 5000).Draw(t, "torn"))
			},
			"": func(t *rapid.T) {
				if m.dead() {
					m = m.crash(drawCrash(t, m.fsys))
				}
			},
			"crash": func(t *rapid.T) { m = m.crash(drawCrash(t, m.fsys)) },
		})
		m = m.crash(drawCrash(t, m.fsys))
		for range 3 { // the journal works from there on
			require.NoError(t, m.append(2000))
			require.NoError(t, m.sync(uint64(len(m.payloads))))
		}
		m.crash(crashfs.KeepNone(), false, 0)
	})
}

// drawCrash returns a crash, whether it only kills the process, and the last commit
// in the index afterwards.
func drawCrash(t *rapid.T, fsys *crashfs.FS) (crashfs.Crash, bool, uint64) {
	known := rapid.Uint64Range(0, 50).Draw(t, "known")
	switch rapid.IntRange(0, 3).Draw(t, "kind of crash") {
	case 0:
		return crashfs.KeepNone(), false, known
	case 1:
		return crashfs.KeepAll(), true, known
	case 2:
		kept := rapid.IntRange(0, fsys.UnsyncedOps()).Draw(t, "kept")
		return crashfs.KeepPrefix(kept, rapid.IntRange(0, 5000).Draw(t, "torn")), false, known
	default:
		seed := rapid.Uint64().Draw(t, "seed")
		return crashfs.Random(rand.New(rand.NewPCG(seed, 0))), false, known
	}
}

// A process that dies leaves reserved space after its last commit.
func TestReservedSpaceIsCutOff(t *testing.T) {
	fsys := crashfs.New()
	o := options(fsys)
	var texts []string
	o.Logger = logline.New(slog.LevelDebug, func(message string) { texts = append(texts, message) })
	j := open(t, o)
	_, err := j.Append(payload(1, 50), nil, true)
	require.NoError(t, err)
	end := j.End().Offset
	name := j.lastSegment().name
	info, err := fsys.Stat(name)
	require.NoError(t, err)
	require.Greater(t, info.Size, end)

	killed := fsys.Crash(crashfs.KeepAll())
	o.FS = killed
	for _, readOnly := range []bool{true, false} {
		o.ReadOnly = readOnly
		again := open(t, o)
		require.EqualValues(t, 1, again.Last())
		require.Equal(t, end, again.End().Offset)
		require.NoError(t, again.Close())
	}
	info, err = killed.Stat(name)
	require.NoError(t, err)
	require.Less(t, info.Size, end+minFrame+10, "nothing but a mark after it")
	require.Empty(t, texts)
}

// A sealed segment has no reserved space, whatever happens.
func TestSealedSegmentsEndWithTheirFrames(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	for i := range 10 {
		_, err := j.Append(payload(i, 900), nil, i%3 > 0)
		require.NoError(t, err)
	}
	files := j.Segments()
	require.Greater(t, len(files), 2)
	sealed := files[:len(files)-1]
	for _, f := range sealed {
		info, err := fsys.Stat(f.Name)
		require.NoError(t, err)
		require.Equal(t, f.Bytes, info.Size, f.Name)
	}
	fsys = fsys.Crash(crashfs.KeepNone())
	for _, f := range sealed {
		info, err := fsys.Stat(f.Name)
		require.NoError(t, err)
		require.Equal(t, f.Bytes, info.Size, "after power loss: %s", f.Name)
	}
}

// After a sync, as much space is prepared as was written before it, and no written
// data is lost.
func TestSpaceForTheNextBurst(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": crashfs.New(), "disk": vfs.OS()} {
		t.Run(name, func(t *testing.T) {
			o := options(fsys)
			o.SegmentSize = 1 << 20
			j, err := Open(filepath.Join(t.TempDir(), "journal"), o)
			require.NoError(t, err)
			j.prepareSpace(false) // before the first write
			var frames []Frame
			for burst := range 12 {
				start := j.End().Offset
				for i := range 10 {
					f, err := j.Append(payload(10*burst+i, 200*burst), nil, true)
					require.NoError(t, err)
					frames = append(frames, f)
				}
				j.prepareSpace(false)
				if w := &j.tail.mapped; w.window != nil {
					end := j.End().Offset
					require.GreaterOrEqual(t, w.end, min(2*end-start, o.SegmentSize))
				}
			}
			require.NotNil(t, j.tail.mapped.window)
			require.NoError(t, j.Close())
			j.prepareSpace(false) // too late
			o.ReadOnly = true
			j, err = Open(j.dir, o)
			require.NoError(t, err)
			defer j.Close()
			r := j.NewReader()
			for i, f := range frames {
				got, err := r.Frame(f.Position)
				require.NoError(t, err)
				require.Equal(t, payload(i, 200*(i/10)), got.Payload)
			}
		})
	}
}

// If there is no space for a window, there may be some for a frame.
func TestFullDiskWithoutWindow(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	fsys.SetCapacity(fsys.Used() + 300)
	frame, err := j.Append(payload(1, 50), nil, true)
	require.NoError(t, err)
	_, err = j.Append(payload(2, 500), nil, true)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, frame.End, j.End().Offset)
	fsys.SetCapacity(0)
	_, err = j.Append(payload(2, 500), nil, true)
	require.NoError(t, err)
}
