//test:race

package crashfs_test

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

// newDisk returns a file system with a durable file f of the given content, and
// that file open for writing.
func newDisk(t *testing.T, content string) (*crashfs.FS, vfs.File) {
	t.Helper()
	disk := crashfs.New()
	f, err := disk.Create("f")
	require.NoError(t, err)
	writeAt(t, f, content, 0)
	require.NoError(t, f.Sync())
	require.NoError(t, disk.SyncDir("."))
	require.Zero(t, disk.UnsyncedOps())
	return disk, f
}

func writeAt(t *testing.T, f vfs.File, s string, off int64) {
	t.Helper()
	n, err := f.WriteAt([]byte(s), off)
	require.NoError(t, err)
	require.Equal(t, len(s), n)
}

func touch(t *testing.T, disk *crashfs.FS, name string) {
	t.Helper()
	f, err := disk.Create(name)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func requireContent(t *testing.T, disk *crashfs.FS, name, want string) {
	t.Helper()
	content, err := disk.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, want, string(content))
}

func TestKeepNone(t *testing.T) {
	disk, f := newDisk(t, "durable")
	writeAt(t, f, "DURABLE and more", 0)
	touch(t, disk, "new")
	require.NoError(t, disk.Rename("f", "g"))
	require.Equal(t, 3, disk.UnsyncedOps())
	require.EqualValues(t, 16, disk.UnsyncedBytes())

	after := disk.Crash(crashfs.Crash{})
	require.Equal(t, []string{"f"}, after.Names())
	requireContent(t, after, "f", "durable")
	require.Zero(t, after.UnsyncedOps())
}

func TestSyncMakesOnlyTheFileDurable(t *testing.T) {
	disk, f := newDisk(t, "")
	g, err := disk.Create("g")
	require.NoError(t, err)
	writeAt(t, f, "f", 0)
	writeAt(t, g, "g", 0)
	require.NoError(t, g.Sync())
	require.Equal(t, []string{"f"}, disk.Crash(crashfs.KeepNone()).Names())
	require.EqualValues(t, 1, disk.UnsyncedBytes())
}

func TestSyncDirMakesOnlyItsNamesDurable(t *testing.T) {
	disk := crashfs.New()
	require.NoError(t, disk.MkdirAll("a/b"))
	touch(t, disk, "a/b/f")
	touch(t, disk, "g")

	require.NoError(t, disk.SyncDir("a/b"))
	require.NoError(t, disk.SyncDir("a"))
	require.Equal(t, 2, disk.UnsyncedOps()) // a and g
	unreachable := disk.Crash(crashfs.KeepAll()).Crash(crashfs.KeepNone())
	require.Empty(t, unreachable.Names())

	disk = disk.Crash(crashfs.KeepAll())
	require.NoError(t, disk.SyncDir("/"))
	require.Equal(t, []string{"a/b/f", "g"}, disk.Crash(crashfs.KeepNone()).Names())
}

func TestRemoveUntilSynced(t *testing.T) {
	disk, f := newDisk(t, "back")
	require.NoError(t, f.Close())
	require.NoError(t, disk.Remove("f"))
	killed := disk.Crash(crashfs.KeepAll())
	requireContent(t, disk.Crash(crashfs.KeepNone()), "f", "back")

	require.Empty(t, killed.Names())
	require.NoError(t, killed.SyncDir("."))
	require.Empty(t, killed.Crash(crashfs.KeepNone()).Names())
}

func TestKeepAllKeepsWhatCanStillBeLost(t *testing.T) {
	disk, f := newDisk(t, "old")
	writeAt(t, f, "new", 0)
	touch(t, disk, "g")

	killed := disk.Crash(crashfs.KeepAll())
	require.Equal(t, []string{"f", "g"}, killed.Names())
	requireContent(t, killed, "f", "new")
	require.Equal(t, 2, killed.UnsyncedOps())

	reopened, err := killed.OpenRW("f")
	require.NoError(t, err)
	require.NoError(t, reopened.Sync())
	lost := killed.Crash(crashfs.KeepNone())
	require.Equal(t, []string{"f"}, lost.Names())
	requireContent(t, lost, "f", "new")
	requireContent(t, disk.Crash(crashfs.KeepNone()), "f", "old")
}

func TestUnsyncedWriteSharesNothingWithTheCaller(t *testing.T) {
	disk, f := newDisk(t, "")
	p := []byte("written")
	_, err := f.WriteAt(p, 0)
	require.NoError(t, err)
	copy(p, "changed")
	requireContent(t, disk.Crash(crashfs.KeepPrefix(1, 0)), "f", "written")
}

func TestKeepPrefix(t *testing.T) {
	disk, f := newDisk(t, "durable")
	writeAt(t, f, "ABC", 0)
	touch(t, disk, "g")
	require.NoError(t, f.Truncate(5))
	writeAt(t, f, "xyz", 5)
	require.NoError(t, disk.Rename("f", "h"))

	tests := []struct {
		n, torn int
		want    map[string]string
	}{
		{0, 0, map[string]string{"f": "durable"}},
		{0, 2, map[string]string{"f": "ABrable"}},
		{0, 99, map[string]string{"f": "ABCable"}},
		{1, 2, map[string]string{"f": "ABCable"}},
		{2, 2, map[string]string{"f": "ABCable", "g": ""}},
		{3, 0, map[string]string{"f": "ABCab", "g": ""}},
		{3, 1, map[string]string{"f": "ABCabx", "g": ""}},
		{4, 0, map[string]string{"f": "ABCabxyz", "g": ""}},
		{5, 0, map[string]string{"g": "", "h": "ABCabxyz"}},
		{99, 0, map[string]string{"g": "", "h": "ABCabxyz"}},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d torn at %d", test.n, test.torn), func(t *testing.T) {
			require.Equal(t, test.want, contents(t, disk.Crash(crashfs.KeepPrefix(test.n, test.torn))))
		})
	}
	requireContent(t, disk.Crash(crashfs.KeepNone()), "f", "durable") // one outcome does not change another
}

func contents(t *testing.T, disk *crashfs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range disk.Names() {
		content, err := disk.ReadFile(name)
		require.NoError(t, err)
		found[name] = string(content)
	}
	return found
}

func TestCrashKillsTheOldAndFreesTheNew(t *testing.T) {
	for name, crash := range map[string]crashfs.Crash{
		"none": crashfs.KeepNone(), "all": crashfs.KeepAll(), "prefix": crashfs.KeepPrefix(0, 0),
	} {
		t.Run(name, func(t *testing.T) { testIndependence(t, crash) })
	}
}

func testIndependence(t *testing.T, crash crashfs.Crash) {
	disk, f := newDisk(t, "old")
	after := disk.Crash(crash)
	requireDead(t, disk, f)

	g, err := after.OpenRW("f")
	require.NoError(t, err)
	writeAt(t, g, "new", 0)
	require.NoError(t, g.Sync())
	requireContent(t, disk, "f", "old")
	requireContent(t, disk.Crash(crash), "f", "old")
	requireContent(t, after, "f", "new")

	writeAt(t, g, "lost", 0)
	requireContent(t, after.Crash(crashfs.KeepNone()), "f", "new")
}

func requireDead(t *testing.T, disk *crashfs.FS, f vfs.File) {
	t.Helper()
	_, read := f.ReadAt(make([]byte, 1), 0)
	_, write := f.WriteAt([]byte("x"), 0)
	_, size := f.Size()
	_, open := disk.Open("f")
	_, openRW := disk.OpenRW("f")
	_, create := disk.Create("x")
	_, list := disk.List(".")
	_, stat := disk.Stat("f")
	for op, err := range map[string]error{
		"read": read, "write": write, "size": size, "truncate": f.Truncate(0), "sync": f.Sync(),
		"open": open, "openrw": openRW, "create": create, "list": list, "stat": stat,
		"remove": disk.Remove("f"), "rename": disk.Rename("f", "g"),
		"mkdir": disk.MkdirAll("d"), "syncdir": disk.SyncDir("."), "close": f.Close(),
	} {
		require.ErrorIs(t, err, crashfs.ErrCrashed, op)
	}
}

func TestRemovedFileStaysUsableWhileOpen(t *testing.T) {
	disk, f := newDisk(t, "abc")
	require.NoError(t, disk.Remove("f"))
	writeAt(t, f, "x", 0)
	p := make([]byte, 3)
	_, err := f.ReadAt(p, 0)
	require.NoError(t, err)
	require.Equal(t, "xbc", string(p))
	require.Zero(t, disk.Used())
	require.Empty(t, disk.Crash(crashfs.KeepAll()).Names())
}

func TestRenameBetweenDirectoriesIsRefused(t *testing.T) {
	disk, _ := newDisk(t, "abc")
	require.NoError(t, disk.MkdirAll("d"))
	require.Error(t, disk.Rename("f", "d/f"))
	require.Error(t, disk.Rename("d", "e"))
	require.Error(t, disk.Rename("f", "d"))
	require.Equal(t, []string{"f"}, disk.Names())
}

func TestWriteFileIsDurable(t *testing.T) {
	disk, f := newDisk(t, "abc")
	writeAt(t, f, "unsynced", 3)
	content, err := disk.ReadFile("f")
	require.NoError(t, err)
	content[0] ^= 0xff // shares no memory with the file
	requireContent(t, disk, "f", "abcunsynced")

	require.NoError(t, disk.WriteFile("f", content))
	require.Zero(t, disk.UnsyncedOps())
	requireContent(t, disk.Crash(crashfs.KeepNone()), "f", string(content))
	require.ErrorIs(t, disk.WriteFile("missing", nil), fs.ErrNotExist)
	_, err = disk.ReadFile("missing")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestConcurrentUse(t *testing.T) {
	disk := crashfs.New()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			f, err := disk.Create(fmt.Sprint("f", i))
			if err != nil {
				t.Error(err)
				return
			}
			for off := range int64(100) {
				_, writeErr := f.WriteAt([]byte{byte('a' + i)}, off)
				_, readErr := f.ReadAt(make([]byte, 1), off)
				_, listErr := disk.List(".")
				for _, err := range []error{writeErr, readErr, listErr, f.Sync(), disk.SyncDir(".")} {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	after := disk.Crash(crashfs.KeepNone())
	for i := range 4 {
		requireContent(t, after, fmt.Sprint("f", i), strings.Repeat(string(rune('a'+i)), 100))
	}
}
