package lock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// workerVariable makes the test binary a worker.
const workerVariable = "LOCK_TEST_WORKER"

// hangs bounds the wait for what happens at once on a machine that does nothing else.
const hangs = 2 * time.Minute

func TestMain(m *testing.M) {
	guardPatience = hangs // the machine may suspend who has a guard
	if os.Getenv(workerVariable) != "" {
		os.Exit(work(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// work answers each line "command path times" with "ok", another word or an error.
func work(commands io.Reader, answers io.Writer) int {
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		var command, path string
		var times int
		if _, err := fmt.Sscanf(lines.Text(), "%s %q %d", &command, &path, &times); err != nil {
			fmt.Fprintln(answers, err)
			return 1
		}
		answer, err := perform(command, path, times)
		if err != nil {
			answer = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Fprintln(answers, answer)
	}
	return 0
}

func perform(command, path string, times int) (string, error) {
	switch command {
	case "take": // and never release
		won, err := New(path, Options{}).TryAcquire()
		if err == nil && !won {
			return "held", nil
		}
		return "ok", err
	case "guard": // and never leave
		_, err := enterGuard(context.Background(), path+".lock")
		return "ok", err
	case "count":
		return "ok", repeat(times, path, increment)
	case "visit":
		return "ok", repeat(times, path, visit)
	}
	return "", errors.New("unknown command " + command)
}

func repeat(times int, path string, critical func(path string) error) error {
	for range times {
		err := With(context.Background(), path, Options{Wait: -1}, func(context.Context) error {
			return critical(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// increment adds one to the number in a file. Concurrent increments would be lost.
func increment(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(data))
	if err != nil {
		return err
	}
	time.Sleep(rand.N(time.Millisecond))
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

// visit creates a marker with this process's pid, and fails if there is one of a running process.
func visit(path string) error {
	pid := os.Getpid()
	mine, marker := fmt.Sprintf("%s.%d", path, pid), path+".marker"
	if err := os.WriteFile(mine, []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return err
	}
	err := os.Link(mine, marker)
	if errors.Is(err, os.ErrExist) {
		data, err := os.ReadFile(marker)
		if err != nil {
			return fmt.Errorf("two at once: %w", err)
		}
		other, err := strconv.Atoi(string(data))
		if err != nil || probe(other).running {
			return fmt.Errorf("two at once: %d and %q", pid, data)
		}
		if err := os.Remove(marker); err != nil {
			return fmt.Errorf("two at once: %w", err)
		}
		if err := os.Link(mine, marker); err != nil {
			return fmt.Errorf("two at once: %w", err)
		}
	} else if err != nil {
		return err
	}
	if err := appendByte(path); err != nil {
		return err
	}
	time.Sleep(rand.N(time.Millisecond))
	return os.Remove(marker)
}

func appendByte(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

// worker is a child process that runs work.
type worker struct {
	t       *testing.T
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startWorker(t *testing.T) *worker {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), workerVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	w := &worker{t: t, process: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(w.kill)
	return w
}

func startWorkers(t *testing.T, n int) []*worker {
	t.Helper()
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = startWorker(t)
	}
	return workers
}

func (w *worker) pid() int { return w.process.Process.Pid }

func (w *worker) tell(command, path string, times int) {
	w.t.Helper()
	_, err := fmt.Fprintf(w.in, "%s %q %d\n", command, path, times)
	require.NoError(w.t, err)
}

func (w *worker) answer() string {
	w.t.Helper()
	line, err := w.out.ReadString('\n')
	require.NoError(w.t, err)
	return strings.TrimSuffix(line, "\n")
}

// kill kills the worker. It can be repeated.
func (w *worker) kill() {
	w.signal()
	w.reap()
}

func (w *worker) signal() { _ = w.process.Process.Kill() }

func (w *worker) reap() {
	_ = w.in.Close()
	_ = w.process.Wait()
}

// target returns the path of a file in a new directory.
func target(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "session.json")
}
