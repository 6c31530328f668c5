package crashfs_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

var errFault = errors.New("injected")

func TestOpsCountsWhatChanges(t *testing.T) {
	disk := crashfs.New()
	count := func(want int, op func()) {
		t.Helper()
		before := disk.Ops()
		op()
		require.Equal(t, want, disk.Ops()-before)
	}
	count(1, func() { require.NoError(t, disk.MkdirAll("a/b")) })
	count(1, func() { touch(t, disk, "f") })
	f, err := disk.OpenRW("f")
	require.NoError(t, err)
	count(1, func() { writeAt(t, f, "abc", 0) })
	count(1, func() { require.NoError(t, f.Truncate(2)) })
	count(1, func() { require.NoError(t, f.Sync()) })
	count(1, func() { require.NoError(t, disk.Rename("f", "g")) })
	count(1, func() { require.NoError(t, disk.SyncDir(".")) })
	count(1, func() { require.Error(t, disk.Remove("f")) })
	count(0, func() {
		_, err := f.ReadAt(make([]byte, 1), 0)
		require.NoError(t, err)
		_, err = f.Size()
		require.NoError(t, err)
		_, err = disk.List(".")
		require.NoError(t, err)
		_, err = disk.Stat("g")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	})
}

func TestCrashAfter(t *testing.T) {
	disk, f := newDisk(t, "")
	disk.CrashAfter(2, 3)
	writeAt(t, f, "one", 0)
	n, err := f.WriteAt([]byte("second"), 3)
	require.ErrorIs(t, err, crashfs.ErrCrashed)
	require.Equal(t, 3, n)
	requireDead(t, disk, f)

	requireContent(t, disk.Crash(crashfs.KeepAll()), "f", "onesec")
	requireContent(t, disk.Crash(crashfs.KeepPrefix(1, 0)), "f", "one")
	requireContent(t, disk.Crash(crashfs.KeepNone()), "f", "")
}

func TestCrashAfterInSync(t *testing.T) {
	disk, f := newDisk(t, "old")
	writeAt(t, f, "new", 0)
	disk.CrashAfter(1, 0)
	require.ErrorIs(t, f.Sync(), crashfs.ErrCrashed)
	requireContent(t, disk.Crash(crashfs.KeepNone()), "f", "old")

	killed := disk.Crash(crashfs.KeepAll())
	reopened, err := killed.OpenRW("f")
	require.NoError(t, err)
	require.NoError(t, reopened.Sync()) // the interrupted sync did not fail, and lost nothing
	requireContent(t, killed.Crash(crashfs.KeepNone()), "f", "new")
}

func TestCrashAfterInRename(t *testing.T) {
	disk, _ := newDisk(t, "")
	disk.CrashAfter(1, 0)
	require.ErrorIs(t, disk.Rename("f", "g"), crashfs.ErrCrashed)
	require.Equal(t, []string{"f"}, disk.Crash(crashfs.KeepAll()).Names())
}

func TestFailOpFailsOnce(t *testing.T) {
	disk, f := newDisk(t, "abc")
	disk.FailOp(2, errFault)
	writeAt(t, f, "x", 0)
	n, err := f.WriteAt([]byte("y"), 0)
	require.ErrorIs(t, err, errFault)
	require.Zero(t, n)
	requireContent(t, disk, "f", "xbc")
	writeAt(t, f, "z", 0)

	disk.FailOp(1, errFault)
	disk.FailOp(2, errFault)
	disk.FailOp(3, errFault)
	disk.FailOp(4, errFault)
	disk.FailOp(5, errFault)
	_, err = disk.Create("g")
	require.ErrorIs(t, err, errFault)
	require.ErrorIs(t, disk.Rename("f", "g"), errFault)
	require.ErrorIs(t, disk.Remove("f"), errFault)
	require.ErrorIs(t, f.Truncate(0), errFault)
	require.ErrorIs(t, disk.MkdirAll("d"), errFault)
	require.Equal(t, map[string]string{"f": "zbc"}, contents(t, disk))
	touch(t, disk, "g")
}

func TestShortWrite(t *testing.T) {
	disk, f := newDisk(t, "abcdef")
	disk.ShortWrite(1, 2, errFault)
	n, err := f.WriteAt([]byte("XYZ"), 1)
	require.ErrorIs(t, err, errFault)
	require.Equal(t, 2, n)
	requireContent(t, disk, "f", "aXYdef")
	writeAt(t, f, "Z", 3)
}

// TestFailedSyncLosesWrites checks that a later successful Sync does not cover
// the writes before a failed one.
func TestFailedSyncLosesWrites(t *testing.T) {
	arm := map[string]func(*crashfs.FS){
		"one operation": func(disk *crashfs.FS) { disk.FailOp(1, errFault) },
		"all syncs":     func(disk *crashfs.FS) { disk.FailSyncs(errFault) },
	}
	for name, arm := range arm {
		t.Run(name, func(t *testing.T) {
			disk, f := newDisk(t, "....")
			writeAt(t, f, "a", 0)
			arm(disk)
			require.ErrorIs(t, f.Sync(), errFault)
			disk.FailSyncs(nil)
			writeAt(t, f, "b", 1)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Sync())

			requireContent(t, disk, "f", "ab..") // programs still see the lost write
			requireContent(t, disk.Crash(crashfs.KeepNone()), "f", ".b..")
			requireContent(t, disk.Crash(crashfs.KeepAll()), "f", "ab..")
		})
	}
}

func TestFailSyncs(t *testing.T) {
	disk, f := newDisk(t, "")
	disk.FailSyncs(errFault)
	touch(t, disk, "g")
	require.ErrorIs(t, f.Sync(), errFault)
	require.ErrorIs(t, f.Sync(), errFault)
	require.ErrorIs(t, disk.SyncDir("."), errFault)
	require.Equal(t, []string{"f"}, disk.Crash(crashfs.KeepNone()).Names())
}

func TestSetCapacity(t *testing.T) {
	disk, f := newDisk(t, "12345")
	touch(t, disk, "g")
	g, err := disk.OpenRW("g")
	require.NoError(t, err)
	disk.SetCapacity(disk.Used() + 3)

	n, err := g.WriteAt([]byte("abcdef"), 0)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 3, n)
	require.EqualValues(t, 8, disk.Used())
	require.Equal(t, map[string]string{"f": "12345", "g": "abc"}, contents(t, disk))

	writeAt(t, f, "54321", 0) // takes no space
	n, err = f.WriteAt([]byte("xy"), 4)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 1, n)
	n, err = f.WriteAt([]byte("xy"), 6)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Zero(t, n)
	require.ErrorIs(t, f.Truncate(6), syscall.ENOSPC)
	requireContent(t, disk, "f", "5432x")

	require.NoError(t, f.Truncate(2))
	n, err = g.WriteAt([]byte("DEFG"), 3)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 3, n)

	disk.SetCapacity(1) // less than is stored
	writeAt(t, f, "ab", 0)
	n, err = f.WriteAt([]byte("c"), 2)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Zero(t, n)

	disk.SetCapacity(0)
	writeAt(t, g, "DEFG", 3)
	requireContent(t, disk, "g", "abcDEFG")
}
