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

// fillDisk limits the size of files, as if the disk were full, and returns a function
// that removes the limit. The journals of these tests are in memory.
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

// indexSize returns the size of the index file.
func (s *crashStore) indexSize() int64 {
	info, err := os.Stat(s.indexPath())
	require.NoError(s.t, err)
	return info.Size()
}

// bulk returns a commit with some tens of kilobytes of index entries.
func (s *crashStore) bulk() *structure.Commit {
	c := &structure.Commit{Time: s.author.Now()}
	for range 4 {
		c.Records = append(c.Records, &structure.Thread{
			ID: structure.NewID[structure.ThreadID](), Metadata: bytes.Repeat([]byte("large "), 1500), CreatedAt: c.Time, UpdatedAt: c.Time,
		})
	}
	return c
}

// fullVariable is set in the process whose file size is limited.
const fullVariable = "EMBEDDED_TEST_FULL"

// Writes continue while the index cannot be folded, as long as there is memory. The
// test runs in a child process, because the limit would also apply to the files of go
// test.
//
//test:norace
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
	require.GreaterOrEqual(t, accepted, 13, "the overlay may grow to four times its size")
	s.check() // and reads work

	empty()
	for s.commit(backend.Full) != nil { // the next fold is tried after a second
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
	require.NoError(t, s.close(), "acknowledged commits are in the journal; only the index is behind")
	empty()
	require.NoError(t, s.open())
	s.check()
	require.NoError(t, s.close())
}

// A journal that cannot be synced allows no checkpoint.
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
