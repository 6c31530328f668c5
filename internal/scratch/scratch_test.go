package scratch

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
)

// victim is the environment variable of a process that makes a directory and waits to be killed.
const victim = "LINEAGE_TEST_SCRATCH"

func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		d, err := New()
		if err == nil {
			err = os.WriteFile(filepath.Join(d.Path, "texts"), []byte("what was said"), 0o600)
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Path)
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	os.Exit(m.Run())
}

// temporary sets the folder of temporary files.
func temporary(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, dir)
	}
	return dir
}

// homeName is the first name of the directory of the user.
func homeName(n int) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("lineage-scratch-%d-%d", os.Geteuid(), n))
}

// The directory of a process that is killed is removed by the next one, and that of a process that runs is not. Nothing
// else is.
func TestKilled(t *testing.T) {
	temporary(t)
	start := func() (*exec.Cmd, string) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victim+"=1")
		_, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		return cmd, lines.Text()
	}
	kill := func(cmd *exec.Cmd) {
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
	}
	runs, kept := start()
	defer kill(runs)
	ends, left := start()
	require.FileExists(t, filepath.Join(left, "texts"))
	kill(ends)
	require.FileExists(t, filepath.Join(left, "texts"))

	home, elsewhere := filepath.Dir(kept), t.TempDir()
	require.Equal(t, homeName(0), home)
	linked := os.Symlink(filepath.Join(elsewhere, "far"+lockSuffix), filepath.Join(home, "planted"+lockSuffix)) == nil
	for _, name := range []string{filepath.Join(elsewhere, "far"+lockSuffix), filepath.Join(elsewhere, "texts"), filepath.Join(home, "inside"+lockSuffix), filepath.Join(home, "early"+lockSuffix)} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	inside := filepath.Join(home, "inside")
	for _, dir := range []string{inside, filepath.Join(home, "planted"), filepath.Join(home, "unlocked"), filepath.Join(os.TempDir(), "lineage-scratch-other")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	if linked {
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(inside, "there")))
	}

	a, err := New()
	require.NoError(t, err)
	b, err := New()
	require.NoError(t, err)
	for _, gone := range []string{left, inside} {
		require.NoDirExists(t, gone)
		require.NoFileExists(t, gone+lockSuffix)
	}
	require.NoFileExists(t, filepath.Join(home, "early"+lockSuffix), "killed before it had a directory")
	require.FileExists(t, filepath.Join(kept, "texts"))
	require.FileExists(t, filepath.Join(elsewhere, "texts"), "links are not followed")
	require.FileExists(t, filepath.Join(elsewhere, "far"+lockSuffix), "links are not followed")
	require.DirExists(t, filepath.Join(home, "unlocked"), "its process may run")
	require.DirExists(t, filepath.Join(os.TempDir(), "lineage-scratch-other"), "nobody lists all temporary files")
	require.DirExists(t, a.Path)
	for _, path := range []string{home, a.Path} {
		if info, err := os.Stat(path); err == nil && os.PathSeparator == '/' {
			require.EqualValues(t, 0o700, info.Mode().Perm())
		}
	}
	require.NoError(t, a.Remove())
	require.NoDirExists(t, a.Path)
	require.NoFileExists(t, a.Path+lockSuffix)
	require.NoError(t, b.Remove())
	require.NoDirExists(t, b.Path)
}

// A directory is locked for as long as it is there, also while it is removed.
func TestLockedWhileRemoved(t *testing.T) {
	temporary(t)
	d, err := New()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(d.Path, "texts"), nil, 0o600))
	defer func(was func(string) error) { removeAll = was }(removeAll)
	removals, remove := 0, removeAll
	others := func() {
		require.NoError(t, clean(filepath.Dir(d.Path)))
		require.FileExists(t, d.Path+lockSuffix)
	}
	removeAll = func(path string) error {
		removals++
		others()
		require.FileExists(t, filepath.Join(path, "texts"))
		require.NoError(t, remove(path))
		others()
		return nil
	}
	require.NoError(t, d.Remove())
	require.Equal(t, 1, removals)
	require.NoDirExists(t, d.Path)
	require.NoFileExists(t, d.Path+lockSuffix)

	// What cannot be removed is removed by the next process.
	d, err = New()
	require.NoError(t, err)
	removeAll = func(string) error { return errors.New("busy") }
	require.ErrorContains(t, d.Remove(), "busy")
	require.DirExists(t, d.Path)
	removeAll = remove
	require.NoError(t, clean(filepath.Dir(d.Path)))
	require.NoDirExists(t, d.Path)
}

// A new directory that is taken for one that was left behind is not used.
func TestTaken(t *testing.T) {
	dir := t.TempDir()
	_, err := newIn(filepath.Join(dir, "gone"))
	require.ErrorIs(t, err, errTaken)
	f, err := os.CreateTemp(dir, "*"+lockSuffix)
	require.NoError(t, err)
	require.NoError(t, os.Rename(f.Name(), f.Name()+".removed"))
	_, err = hold(f)
	require.ErrorIs(t, err, errTaken)
	f, err = os.CreateTemp(dir, "*"+lockSuffix)
	require.NoError(t, err)
	other, err := os.Open(f.Name())
	require.NoError(t, err)
	require.NoError(t, vfs.TryLock(other, vfs.Shared))
	_, err = hold(f)
	require.ErrorIs(t, err, errTaken)
	require.NoError(t, other.Close())
	d, err := newIn(dir)
	require.NoError(t, err)
	require.NoError(t, clean(dir))
	require.DirExists(t, d.Path)
	require.NoError(t, d.Remove())
}

// Names that others have taken are not used. Where no file has an owner, each call has a directory of its own.
func TestNames(t *testing.T) {
	folder := temporary(t)
	elsewhere := t.TempDir()
	require.NoError(t, os.WriteFile(homeName(0), nil, 0o600))
	taken := 1
	if os.Symlink(elsewhere, homeName(1)) == nil {
		taken = 2
	}
	if os.PathSeparator == '/' {
		require.NoError(t, os.Mkdir(homeName(taken), 0o755))
		require.NoError(t, os.Chmod(homeName(taken), 0o755))
		taken++
	}
	d, err := New()
	require.NoError(t, err)
	require.Equal(t, homeName(taken), filepath.Dir(d.Path))
	require.NoError(t, d.Remove())
	left, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, os.Remove(homeName(taken)))

	defer func(was func(string) bool) { isOwn = was }(isOwn)
	isOwn = func(string) bool { return false }
	for range 2 * maxTaken {
		d, err := New()
		require.NoError(t, err)
		require.DirExists(t, d.Path)
		require.NoError(t, d.Remove())
	}
	left, err = os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, taken)
	for n := range maxTaken {
		_ = os.Mkdir(homeName(n), 0o700)
	}
	_, err = New()
	require.ErrorContains(t, err, "other users")
}

// A temporary directory that cannot be listed can be used.
func TestUnlisted(t *testing.T) {
	folder := temporary(t)
	require.NoError(t, os.Chmod(folder, 0o300))
	defer os.Chmod(folder, 0o700) //nolint:errcheck // the superuser needs none
	d, err := New()
	require.NoError(t, err)
	require.NoError(t, d.Remove())
}

// A file is gone with its directory when it is closed.
func TestFile(t *testing.T) {
	temporary(t)
	a, err := NewFile()
	require.NoError(t, err)
	b, err := NewFile()
	require.NoError(t, err)
	_, err = a.WriteString("what was said")
	require.NoError(t, err)
	require.FileExists(t, a.Name())
	require.FileExists(t, b.Name())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	left, err := os.ReadDir(homeName(0))
	require.NoError(t, err)
	require.Empty(t, left)
}
