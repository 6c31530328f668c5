package scratch

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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

// The directory of a process that is killed is removed by the next one, and that of a process that runs is not. Nothing
// else is.
func TestKilled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TMP", os.Getenv("TMPDIR"))
	t.Setenv("TEMP", os.Getenv("TMPDIR"))
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

	elsewhere := t.TempDir()
	planted := filepath.Join(os.Getenv("TMPDIR"), "lineage-scratch-planted")
	linked := os.Symlink(elsewhere, planted) == nil
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, lockName), nil, 0o600))
	open := filepath.Join(os.Getenv("TMPDIR"), "lineage-scratch-open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(open, lockName), nil, 0o600))
	inLink := filepath.Join(os.Getenv("TMPDIR"), "lineage-scratch-inside")
	require.NoError(t, os.Mkdir(inLink, 0o700))
	if linked {
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(inLink, "texts")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(inLink, lockName), nil, 0o600))
	empty := filepath.Join(os.Getenv("TMPDIR"), "lineage-scratch-empty") // killed before it had a lock
	require.NoError(t, os.Mkdir(empty, 0o700))

	a, err := New()
	require.NoError(t, err)
	b, err := New()
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.NoDirExists(t, empty)
	require.NoDirExists(t, inLink)
	require.FileExists(t, filepath.Join(kept, "texts"))
	require.FileExists(t, filepath.Join(elsewhere, lockName), "links are not followed")
	require.DirExists(t, a.Path)
	if info, err := os.Stat(a.Path); err == nil && os.PathSeparator == '/' {
		require.EqualValues(t, 0o700, info.Mode().Perm())
		require.DirExists(t, open, "not made by this package")
	}
	require.NoError(t, a.Remove())
	require.NoDirExists(t, a.Path)
	require.NoError(t, b.Remove())
	require.NoDirExists(t, b.Path)
}

// A directory that is taken for one that was left behind is not used.
func TestTaken(t *testing.T) {
	dir := t.TempDir()
	_, err := hold(filepath.Join(dir, "gone"))
	require.ErrorIs(t, err, errTaken)
	d, err := hold(dir)
	require.NoError(t, err)
	require.NoError(t, reclaim(dir))
	require.FileExists(t, filepath.Join(dir, lockName))
	require.NoError(t, d.Remove())
}

// A temporary directory that cannot be listed can be used.
func TestUnlisted(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	t.Setenv("TEMP", temporary)
	require.NoError(t, os.Chmod(temporary, 0o300))
	defer os.Chmod(temporary, 0o700) //nolint:errcheck // the superuser needs none
	d, err := New()
	require.NoError(t, err)
	require.NoError(t, d.Remove())
}

// A file is gone with its directory when it is closed.
func TestFile(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	t.Setenv("TEMP", temporary)
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
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
