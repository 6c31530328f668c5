//test:race

package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/internal/vfs/memfs"
)

// TestConformance tests the contract of the interfaces on every file system.
func TestConformance(t *testing.T) {
	systems := map[string]func(t *testing.T) (vfs.FS, string){
		"os": func(t *testing.T) (vfs.FS, string) { return vfs.OS(), t.TempDir() },
		"memfs": func(t *testing.T) (vfs.FS, string) {
			fsys := memfs.New()
			require.NoError(t, fsys.MkdirAll("/base"))
			return fsys, "/base"
		},
		"crashfs": func(t *testing.T) (vfs.FS, string) {
			fsys := crashfs.New()
			require.NoError(t, fsys.MkdirAll("/base"))
			return fsys, "/base"
		},
	}
	tests := map[string]func(t *testing.T, fsys vfs.FS, dir string){
		"create":         testCreate,
		"open":           testOpen,
		"read at":        testReadAt,
		"write at":       testWriteAt,
		"truncate":       testTruncate,
		"contents":       testContents,
		"window":         testWindow,
		"window filled":  testWindowFilled,
		"sync":           testSync,
		"closed file":    testClosedFile,
		"rename":         testRename,
		"remove":         testRemove,
		"directories":    testDirectories,
		"list":           testList,
		"missing names":  testMissingNames,
		"file as parent": testFileAsParent,
	}
	for system, open := range systems {
		t.Run(system, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					fsys, dir := open(t)
					test(t, fsys, dir)
				})
			}
		})
	}
}

func testCreate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	f, err := fsys.Create(name)
	require.NoError(t, err)
	requireSize(t, f, 0)
	_, err = f.WriteAt([]byte("kept"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	again, err := fsys.Create(name)
	require.ErrorIs(t, err, fs.ErrExist)
	require.Nil(t, again)
	require.Equal(t, "kept", contentOf(t, fsys, name))

	_, err = fsys.Create(dir)
	require.ErrorIs(t, err, fs.ErrExist)
}

func testOpen(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "abc")

	f, err := fsys.Open(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 0)
	require.Error(t, err)
	require.Error(t, f.Truncate(0))
	require.NoError(t, f.Close())
	require.Equal(t, "abc", contentOf(t, fsys, name))

	f, err = fsys.OpenRW(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("x"), 1)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "axc", contentOf(t, fsys, name))
}

func testReadAt(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "0123456789")
	f, err := fsys.Open(name)
	require.NoError(t, err)
	defer f.Close()

	tests := map[string]struct {
		off  int64
		size int
		want string
		err  error
	}{
		"all":          {0, 10, "0123456789", nil},
		"middle":       {3, 4, "3456", nil},
		"past the end": {8, 4, "89", io.EOF},
		"at the end":   {10, 1, "", io.EOF},
		"far behind":   {1000, 1, "", io.EOF},
		"nothing":      {10, 0, "", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := make([]byte, test.size)
			n, err := f.ReadAt(p, test.off)
			require.Equal(t, test.err, err)
			require.Equal(t, test.want, string(p[:n]))
		})
	}
	_, err = f.ReadAt(make([]byte, 1), -1)
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
}

func testWriteAt(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	f, err := fsys.Create(name)
	require.NoError(t, err)
	defer f.Close()

	p := []byte("abc")
	n, err := f.WriteAt(p, 5)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	copy(p, "zzz") // the file does not share memory with p
	require.Equal(t, "\x00\x00\x00\x00\x00abc", contentOf(t, fsys, name))

	_, err = f.WriteAt([]byte("xy"), 4)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00\x00\x00xybc", contentOf(t, fsys, name))

	n, err = f.WriteAt(nil, 100)
	require.NoError(t, err)
	require.Zero(t, n)
	requireSize(t, f, 8)

	_, err = f.WriteAt(p, -1)
	require.Error(t, err)
}

// testContents compares a file with its bytes in memory, after random writes and truncations.
func testContents(t *testing.T, fsys vfs.FS, dir string) {
	files := 0
	rapid.Check(t, func(t *rapid.T) {
		name := filepath.Join(dir, strconv.Itoa(files))
		files++
		f, err := fsys.Create(name)
		require.NoError(t, err)
		defer f.Close()
		var want []byte
		resize := func(size int) {
			if size > len(want) {
				want = append(want, make([]byte, size-len(want))...)
			}
			want = want[:size:size]
		}
		// Positions near the boundaries of pages, for any page size.
		place := rapid.Custom(func(t *rapid.T) int {
			return max(0, rapid.SampledFrom([]int{0, 512, 4 << 10, 64 << 10, 128 << 10, 192 << 10}).Draw(t, "near")+rapid.IntRange(-3, 3).Draw(t, "by"))
		})
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				off, p := place.Draw(t, "off"), bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, place.Draw(t, "length"))
				n, err := f.WriteAt(p, int64(off))
				require.NoError(t, err)
				require.Equal(t, len(p), n)
				if len(p) > 0 {
					resize(max(len(want), off+len(p)))
				}
				copy(want[min(off, len(want)):], p)
			case 1:
				size := place.Draw(t, "size")
				require.NoError(t, f.Truncate(int64(size)))
				resize(size)
			case 2:
				off, p := place.Draw(t, "off"), bytes.Repeat([]byte{0xee}, place.Draw(t, "length"))
				n, err := f.ReadAt(p, int64(off))
				there := want[min(off, len(want)):]
				there = there[:min(len(p), len(there))]
				require.True(t, bytes.Equal(there, p[:n]))
				require.Equal(t, len(there) < len(p), errors.Is(err, io.EOF))
			}
		}
		got := make([]byte, len(want)+1)
		n, err := f.ReadAt(got, 0)
		require.ErrorIs(t, err, io.EOF)
		require.True(t, bytes.Equal(want, got[:n]))
	})
}

// TestRootInMemory uses the root of file systems in memory as a file.
func TestRootInMemory(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memfs": memfs.New(), "crashfs": crashfs.New()} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, fsys.Remove("/"))
			require.Error(t, fsys.Rename("/", "/x"))
			_, err := fsys.Create("/")
			require.Error(t, err)
			_, err = fsys.Open("/")
			require.Error(t, err)
			_, err = fsys.Stat("/")
			require.NoError(t, err)
			require.NoError(t, fsys.MkdirAll("/"))
		})
	}
}

// mappable makes a file that can be written through memory, where there are such.
func mappable(t *testing.T, fsys vfs.FS, name string) (vfs.File, vfs.Mapper) {
	t.Helper()
	f, err := fsys.Create(name)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	m, ok := f.(vfs.Mapper)
	_, inMemory := fsys.(*memfs.FS) // which has no mapping
	require.True(t, ok || inMemory || runtime.GOOS != "linux")
	return f, m
}

// testWindow writes through a window and through WriteAt.
func testWindow(t *testing.T, fsys vfs.FS, dir string) {
	f, m := mappable(t, fsys, filepath.Join(dir, "file"))
	if m == nil {
		return
	}
	_, err := f.WriteAt([]byte("head"), 0)
	require.NoError(t, err)
	w, err := m.Map(4, 10_000)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, 10_004, size)
	require.NoError(t, w.WriteAt([]byte("first"), 4))
	require.NoError(t, w.WriteAt([]byte("last"), 10_000))
	_, err = f.WriteAt([]byte("beside"), 5_000)
	require.NoError(t, err)
	for _, off := range []int64{0, 3, 10_001, 1 << 40} {
		require.ErrorIs(t, w.WriteAt([]byte("outside"), off), fs.ErrInvalid, off)
	}
	got := make([]byte, 10_004)
	_, err = f.ReadAt(got, 0)
	require.NoError(t, err)
	want := make([]byte, 10_004)
	copy(want, "headfirst")
	copy(want[5_000:], "beside")
	copy(want[10_000:], "last")
	require.Equal(t, want, got)
	require.NoError(t, f.Sync())

	smaller, err := m.Map(8, 100)
	require.NoError(t, err)
	size, err = f.Size()
	require.NoError(t, err)
	require.EqualValues(t, 10_004, size, "a window inside the file does not change its size")
	require.NoError(t, smaller.Close())

	// A write to a truncated part of a window is an error, not a crash.
	require.NoError(t, f.Truncate(0))
	require.Error(t, w.WriteAt([]byte("gone"), 9_000))
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.WriteAt([]byte("closed"), 4), fs.ErrClosed)

	for _, bad := range [][2]int64{{-1, 10}, {0, 0}, {0, -1}} {
		_, err = m.Map(bad[0], bad[1])
		require.ErrorIs(t, err, fs.ErrInvalid, bad)
	}
	require.NoError(t, f.Close())
	_, err = m.Map(0, 10)
	require.ErrorIs(t, err, fs.ErrClosed)
}

// testWindowFilled fills windows piece by piece, which populates their pages, and
// closes them at any moment.
func testWindowFilled(t *testing.T, fsys vfs.FS, dir string) {
	const size = 1 << 20
	name := filepath.Join(dir, "filled")
	f, m := mappable(t, fsys, name)
	if m == nil {
		return
	}
	piece := make([]byte, 579)
	var want []byte
	for round := range 20 {
		w, err := m.Map(int64(len(want)), size)
		require.NoError(t, err)
		upTo := len(want) + size/20*(round+1)
		for len(want)+len(piece) <= upTo {
			for i := range piece {
				piece[i] = byte(len(want) + i*round + 1)
			}
			require.NoError(t, w.WriteAt(piece, int64(len(want))))
			want = append(want, piece...)
			switch len(want) / len(piece) % 100 {
			case 0:
				w.Expect(int64(len(want)), int64(round)*10_000)
			case 50:
				w.Expect(int64(upTo), 10*size)
			case 75:
				w.Expect(-1, 1)
				w.Expect(10*size, 1)
			}
		}
		require.NoError(t, w.Close())
		w.Expect(int64(len(want)), 1)
		require.NoError(t, f.Truncate(int64(len(want))))
	}
	require.True(t, string(want) == contentOf(t, fsys, name))
}

func testTruncate(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	f, err := fsys.Create(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("abcdef"), 0)
	require.NoError(t, err)

	require.NoError(t, f.Truncate(2))
	requireSize(t, f, 2)
	require.NoError(t, f.Truncate(4)) // the truncated bytes are gone
	require.Equal(t, "ab\x00\x00", contentOf(t, fsys, name))

	info, err := fsys.Stat(name)
	require.NoError(t, err)
	require.Equal(t, vfs.Info{Size: 4}, info)
	require.Error(t, f.Truncate(-1))
}

func testSync(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("abc"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, fsys.SyncDir(dir))
	require.Equal(t, "abc", contentOf(t, fsys, name))
}

func testClosedFile(t *testing.T, fsys vfs.FS, dir string) {
	f, err := fsys.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, fs.ErrClosed)
	_, err = f.Size()
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, f.Truncate(0), fs.ErrClosed)
	require.ErrorIs(t, f.Sync(), fs.ErrClosed)
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
}

func testRename(t *testing.T, fsys vfs.FS, dir string) {
	oldName, newName := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	write(t, fsys, oldName, "moved")
	write(t, fsys, newName, "replaced")

	require.NoError(t, fsys.Rename(oldName, newName))
	require.Equal(t, "moved", contentOf(t, fsys, newName))
	_, err := fsys.Stat(oldName)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, fsys.Rename(newName, newName))
	require.Equal(t, "moved", contentOf(t, fsys, newName))
}

func testRemove(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "abc")
	require.NoError(t, fsys.Remove(name))
	require.ErrorIs(t, fsys.Remove(name), fs.ErrNotExist)

	write(t, fsys, name, "") // the name can be reused
	sub := filepath.Join(dir, "sub")
	require.NoError(t, fsys.MkdirAll(sub))
	write(t, fsys, filepath.Join(sub, "f"), "abc")
	require.Error(t, fsys.Remove(sub))
	require.Equal(t, "abc", contentOf(t, fsys, filepath.Join(sub, "f")))
	require.NoError(t, fsys.Remove(filepath.Join(sub, "f")))
	require.NoError(t, fsys.Remove(sub))
	_, err := fsys.Stat(sub)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func testDirectories(t *testing.T, fsys vfs.FS, dir string) {
	deep := filepath.Join(dir, "a", "b")
	require.NoError(t, fsys.MkdirAll(deep))
	name := filepath.Join(deep, "f")
	write(t, fsys, name, "abc")
	require.NoError(t, fsys.MkdirAll(deep))
	require.Equal(t, "abc", contentOf(t, fsys, name))
	require.NoError(t, fsys.SyncDir(deep))
	_, err := fsys.Stat(deep)
	require.NoError(t, err)
}

func testList(t *testing.T, fsys vfs.FS, dir string) {
	names, err := fsys.List(dir)
	require.NoError(t, err)
	require.Empty(t, names)

	for _, base := range []string{"b", "c", "a", "10", "9"} {
		write(t, fsys, filepath.Join(dir, base), base)
	}
	require.NoError(t, fsys.MkdirAll(filepath.Join(dir, "aa")))
	write(t, fsys, filepath.Join(dir, "aa", "below"), "")

	names, err = fsys.List(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"10", "9", "a", "b", "c"}, names)
}

func testMissingNames(t *testing.T, fsys vfs.FS, dir string) {
	missing := filepath.Join(dir, "missing")
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "")
	below := filepath.Join(missing, "f")

	for _, name := range []string{missing, below} {
		f, err := fsys.Open(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Nil(t, f)
		f, err = fsys.OpenRW(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Nil(t, f)
		_, err = fsys.Stat(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.List(name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, fsys.Remove(name), fs.ErrNotExist)
		require.ErrorIs(t, fsys.Rename(name, filepath.Join(dir, "new")), fs.ErrNotExist)
	}
	_, err := fsys.Create(below)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, fsys.Rename(name, below), fs.ErrNotExist)
}

func testFileAsParent(t *testing.T, fsys vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	write(t, fsys, name, "abc")
	require.Error(t, fsys.MkdirAll(name))
	require.Error(t, fsys.MkdirAll(filepath.Join(name, "sub")))
	_, err := fsys.Create(filepath.Join(name, "sub"))
	require.Error(t, err)
	_, err = fsys.List(name)
	require.Error(t, err)
	require.Equal(t, "abc", contentOf(t, fsys, name))
}

// TestOSModes checks that only the owner can read files and directories.
func TestOSModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, vfs.OS().MkdirAll(dir))
	write(t, vfs.OS(), filepath.Join(dir, "f"), "")
	for name, want := range map[string]fs.FileMode{
		filepath.Dir(dir):       0o700,
		dir:                     0o700,
		filepath.Join(dir, "f"): 0o600,
	} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
}

func write(t *testing.T, fsys vfs.FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func contentOf(t *testing.T, fsys vfs.FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	var content strings.Builder
	_, err = io.Copy(&content, io.NewSectionReader(f, 0, size))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return content.String()
}

func requireSize(t *testing.T, f vfs.File, want int64) {
	t.Helper()
	size, err := f.Size()
	require.NoError(t, err)
	require.Equal(t, want, size)
}
