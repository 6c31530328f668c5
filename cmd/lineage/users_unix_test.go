//go:build unix

package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

// someone is a user who is not root.
const someone = 4711

// of calls a function with every file of a store.
func of(t *testing.T, dir string, do func(path string, info fs.FileInfo) error) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return do(path, info)
	}))
}

// asSomeone returns a command that is not run as root.
func asSomeone(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	c := command(t, "lineage", args...)
	c.Path = program
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
	}
	c.Dir = "/"
	own := filepath.Dir(program)
	c.Env = append(os.Environ(), "TMPDIR="+own, "HOME="+own, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=")
	return c
}

// forSomeone returns a store that someone can use, and root too, and the program for that, in a
// directory for what it makes.
func forSomeone(t *testing.T) (program, dir string) {
	t.Helper()
	dir = newStore(t)
	base := filepath.Dir(dir)
	program = filepath.Join(base, "tmp", "lineage")
	require.NoError(t, os.Mkdir(filepath.Dir(program), 0o777))
	in, err := os.Open(os.Args[0])
	require.NoError(t, err)
	defer in.Close()
	out, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	if os.Geteuid() == 0 {
		for _, above := range []string{base, filepath.Dir(base)} {
			require.NoError(t, os.Chmod(above, 0o755))
		}
		require.NoError(t, os.Chown(filepath.Dir(program), someone, someone))
		of(t, dir, func(path string, _ fs.FileInfo) error { return os.Chown(path, someone, someone) })
	}
	return program, dir
}

// TestReadOnlyStore reads a store that this user cannot write to, and follows it.
func TestReadOnlyStore(t *testing.T) {
	program, dir := forSomeone(t)
	of(t, dir, func(path string, info fs.FileInfo) error {
		t.Cleanup(func() { _ = os.Chmod(path, info.Mode().Perm()) })
		return os.Chmod(path, info.Mode().Perm()&0o555)
	})
	run := func(args ...string) (string, error) {
		out, err := asSomeone(t, program, append(args, "--store", dir)...).CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{{"log"}, {"tree"}, {"search", "hello"}, {"watch", "--from", "1", "--follow=false"}, {"thread", "list"}} {
		out, err := run(args...)
		require.NoError(t, err, "%v: %s", args, out)
		require.Contains(t, out, "hello", args)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(program), "lineage-scratch-*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left of the search")
	out, err := run("append", "more")
	require.Error(t, err)
	require.Contains(t, out, "permission denied")
	out, err = run("serve", "--idle", "1ms", "--listen", "127.0.0.1:0")
	require.Error(t, err)
	require.Contains(t, out, "--read-only shows a store that cannot be written")
	out, err = run("serve", "--idle", "1ms", "--listen", "127.0.0.1:0", "--read-only")
	require.NoError(t, err, out)
	require.Contains(t, out, ".localhost:")
	for _, args := range [][]string{{"log", "--follow"}, {"watch", "--from", "1"}} {
		c := asSomeone(t, program, append(args, "--store", dir)...)
		printed := &notifyingBuffer{wrote: make(chan string, 100)}
		var failed bytes.Buffer
		c.Stdout, c.Stderr = printed, &failed
		require.NoError(t, c.Start())
		for text := ""; !strings.Contains(text, "hello"); {
			text += <-printed.wrote
		}
		require.NoError(t, c.Process.Signal(syscall.SIGINT))
		require.Error(t, c.Wait())
		require.Equal(t, app.ExitInterrupted, c.ProcessState.ExitCode(), failed.String())
	}
}

// TestRootLeavesNothingOfItsOwn has root use a store through the process of its user, who can read
// everything afterwards.
func TestRootLeavesNothingOfItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	program, dir := forSomeone(t)
	c := asSomeone(t, program, "serve", "--no-http", "--store", dir)
	require.NoError(t, c.Start())
	atWork(t, dir)
	for _, args := range [][]string{{"thread", "create", "--title", "of root"}, {"append", "root said"}, {"search", "said"}} {
		got := runLine(t.Context(), append(args, "--store", dir)...)
		require.Equal(t, 0, got.code, got.err)
	}
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.Wait())
	found := 0
	of(t, dir, func(path string, info fs.FileInfo) error {
		found++
		require.EqualValues(t, someone, info.Sys().(*syscall.Stat_t).Uid, path)
		return nil
	})
	require.Greater(t, found, 5)
}

// A store in the home directory that this user may not read is not reported as missing.
func TestUnreadableStoreAtHome(t *testing.T) {
	program, _ := forSomeone(t)
	own := filepath.Join(filepath.Dir(program), app.StoreDir)
	require.NoError(t, os.MkdirAll(filepath.Join(own, "journal"), 0o700))
	require.NoError(t, os.Chmod(own, 0))
	defer os.Chmod(own, 0o700)
	for _, args := range [][]string{{"thread", "list"}, {"follow", "--once"}, {"init"}} {
		c := asSomeone(t, program, args...)
		c.Dir = filepath.Dir(program)
		out, err := c.CombinedOutput()
		require.Error(t, err, args)
		require.Contains(t, string(out), "permission denied", args)
		require.NotContains(t, string(out), "not found", args)
	}
}
