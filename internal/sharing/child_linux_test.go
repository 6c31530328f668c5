package sharing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// childVariable makes the test binary a child process. It holds a command, the directory of a store
// and a name for what the child writes.
const childVariable = "SHARING_TEST_CHILD"

// beChild runs the command of a child process, if this is one.
func beChild() {
	got := os.Getenv(childVariable)
	if got == "" {
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	do, rest, _ := strings.Cut(got, " ")
	dir, name, _ := strings.Cut(rest, " ")
	if err := map[string]func(dir, name string) error{"hold": hold, "write": write, "lock": lockOnly, "knock": knock, "plant": plant}[do](dir, name); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hold has a store open until its input ends.
func hold(dir, _ string) error {
	e, err := Open(background, dir, normal)
	if err != nil {
		return err
	}
	fmt.Println("ready", owns(e))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return e.Close()
}

// write creates threads until its input ends, and prints the ones that were committed.
func write(dir, name string) error {
	e, err := Open(background, dir, normal)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(background)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	out := bufio.NewWriter(os.Stdout)
	for i := 0; ctx.Err() == nil; i++ {
		thread := fmt.Sprintf("%s-%d", name, i)
		if _, err := e.Apply(background, newThread(thread), backend.Options{}); err != nil {
			return err
		}
		fmt.Fprintln(out, thread)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return e.Close()
}

// lockOnly locks a store in a process that outlives this one.
func lockOnly(dir, _ string) error {
	f, err := os.OpenFile(dir+"/LOCK", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	keeper := exec.Command("cat")
	keeper.Stdin, keeper.ExtraFiles = os.Stdin, []*os.File{f}
	if err := keeper.Start(); err != nil {
		return err
	}
	fmt.Println("ready", keeper.Process.Pid)
	return nil
}

// knock connects to the socket of a store, and prints how many bytes the owner sent and whether this
// process refuses the owner.
func knock(dir, _ string) error {
	conn, err := net.Dial("unix", filepath.Join(dir, embedded.SocketFile))
	if err != nil {
		return err
	}
	defer conn.Close()
	n, err := conn.Read(make([]byte, 1))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	_, err = dial(dir)
	fmt.Println("got", n, errors.Is(err, fs.ErrPermission))
	return nil
}

// plant replaces the socket of a store by its own until its input ends.
func plant(dir, _ string) error {
	l, err := net.Listen("unix", filepath.Join(dir, embedded.SocketFile))
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func threadID(name string) structure.ThreadID { return structure.DeriveID[structure.ThreadID](name) }

func newThread(name string) *structure.Commit {
	return &structure.Commit{Records: []structure.Record{&structure.Thread{ID: threadID(name), Title: name, Incarnation: 1}}}
}

// child is another process.
type child struct {
	*exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

func start(t testing.TB, do string) *child {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0]), do)
}

func startCommand(t testing.TB, cmd *exec.Cmd, do string) *child {
	t.Helper()
	cmd.Env = append(os.Environ(), childVariable+"="+do)
	cmd.Stderr = os.Stderr
	input, in, err := os.Pipe() // which Wait does not close
	require.NoError(t, err)
	cmd.Stdin = input
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, input.Close())
	c := &child{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close()
		if c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return c
}

// line returns the next line that a child prints.
func (c *child) line(t testing.TB) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// kill kills a child.
func (c *child) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
}

// finish ends the input of a child and waits for it.
func (c *child) finish(t testing.TB) {
	t.Helper()
	require.NoError(t, c.in.Close())
	_, _ = io.Copy(io.Discard, c.out)
	require.NoError(t, c.Wait())
}

// stop stops a child and waits until it has stopped.
func (c *child) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return err == nil && strings.HasPrefix(state, "T")
	}, hangs, time.Millisecond)
}
