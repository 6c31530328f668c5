//go:build unix

package embedded

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// fillDisk lets no file grow beyond a size, as if the disk were full, and returns
// a function that frees it again. The journals of these tests are in memory.
func fillDisk(t *testing.T, size int64) (empty func()) {
	t.Helper()
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	full := before
	full.Cur = uint64(size)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &full))
	empty = func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) }
	t.Cleanup(empty)
	return empty
}

// indexSize returns how long the index file is.
func (s *crashStore) indexSize() int64 {
	info, err := os.Stat(s.indexPath())
	require.NoError(s.t, err)
	return info.Size()
}

// bulk returns a commit whose index entries take some tens of kilobytes.
func (s *crashStore) bulk() *structure.Commit {
	c := &structure.Commit{Time: s.author.Now()}
	for range 4 {
		c.Records = append(c.Records, &structure.Thread{
			ID: structure.NewID[structure.ThreadID](), Metadata: bytes.Repeat([]byte("large "), 1500), CreatedAt: c.Time, UpdatedAt: c.Time,
		})
	}
	return c
}

// fullVariable is set in the process whose files can be kept small.
const fullVariable = "EMBEDDED_TEST_FULL"

// Writes go on while the index cannot, as long as there is room in memory. The test
// starts a process that runs it: in this one the limit would also be one on the files
// that go test writes.
func TestCrashIndexDiskFull(t *testing.T) {
	if os.Getenv(fullVariable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashIndexDiskFull$", "-test.v")
		cmd.Env = append(os.Environ(), fullVariable+"=yes", "TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestCrashIndexDiskFull")
		return
	}
	s := newCrashStore(t, t.TempDir(), rand.New(rand.NewPCG(9, 9)), crashfs.New(), Options{OverlayBytes: 128 << 10})
	require.NoError(t, s.commit(backend.Full))
	require.NoError(t, s.checkpoint(false))
	empty := fillDisk(t, s.indexSize())
	accepted := 0
	var err error
	for range 100 {
		if err = s.apply(s.bulk(), backend.Full); err != nil {
			break
		}
		accepted++
	}
	require.ErrorContains(t, err, syscall.EFBIG.Error())
	require.ErrorContains(t, err, "index checkpoint")
	require.GreaterOrEqual(t, accepted, 13, "there is room for four times the overlay's size")
	s.check() // and reads go on

	empty()
	for s.commit(backend.Full) != nil { // the next attempt to fold comes a second after the last
		time.Sleep(50 * time.Millisecond)
	}
	require.NoError(t, s.checkpoint(false))
	s.verify()
	s.check()
	s.crash(crashfs.KeepNone(), false, indexAsItIs)
	require.NoError(t, s.close())
	require.NoError(t, s.open())
	s.check()

	empty = fillDisk(t, s.indexSize())
	for range 8 {
		require.NoError(t, s.apply(s.bulk(), backend.Full))
	}
	require.NoError(t, s.close(), "what was acknowledged is there; only the index is behind")
	empty()
	require.NoError(t, s.open())
	s.check()
	require.NoError(t, s.close())
}

// A journal that cannot be synced takes no checkpoint either.
func TestCrashCheckpointNeedsDurableJournal(t *testing.T) {
	s := newCrashStore(t, t.TempDir(), rand.New(rand.NewPCG(9, 9)), crashfs.New(), Options{OverlayBytes: 1 << 20})
	require.NoError(t, s.commit(backend.Full))
	require.NoError(t, s.checkpoint(true))
	require.NoError(t, s.commit(backend.Normal))
	s.disk.FailSyncs(errDisk)
	require.ErrorIs(t, s.checkpoint(false), errDisk)
	require.Equal(t, s.saved, s.readIndex())
	_, err := s.engine.Head(context.Background())
	require.NoError(t, err)
	s.check()
	s.crash(crashfs.KeepNone(), false, indexAsItIs)
	require.Len(t, s.written, 1)
	require.NoError(t, s.close())
}
