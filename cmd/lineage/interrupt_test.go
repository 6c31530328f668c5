//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
)

// soon bounds what ends at once on a machine that does nothing else.
const soon = 2 * time.Minute

// command returns the command line of a program of this test binary.
func command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Args = append([]string{program}, args...)
	c.WaitDelay = soon
	t.Cleanup(func() {
		if c.Process != nil && c.ProcessState == nil {
			c.Process.Kill()
			c.Wait()
		}
	})
	return c
}

// ended waits for a process and returns its exit code.
func ended(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		c.Wait()
		close(done)
	}()
	select {
	case <-done:
		return c.ProcessState.ExitCode()
	case <-time.After(soon):
		c.Process.Kill()
		<-done
		t.Fatalf("%v goes on", c.Args)
		return 0
	}
}

// signalCodes are the exit codes of processes that were told to end.
var signalCodes = map[syscall.Signal]int{syscall.SIGINT: app.ExitInterrupted, syscall.SIGTERM: app.ExitTerminated}

// A process that does not look whether it was interrupted ends all the same: after a time
// of grace, or with the second signal.
func TestSignalsEndTheObstinate(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, at := range []string{"loop", fifo} {
		for sent, code := range signalCodes {
			for _, grace := range []string{"1ms", "1h"} {
				t.Run(fmt.Sprint(filepath.Base(at), " ", sent, " ", grace), func(t *testing.T) {
					c := command(t, "obstinate", at, grace)
					out, err := c.StdoutPipe()
					require.NoError(t, err)
					require.NoError(t, c.Start())
					require.NoError(t, next(out))
					require.NoError(t, c.Process.Signal(sent))
					if grace == "1h" {
						require.NoError(t, next(out), "the first signal ends the context")
						require.NoError(t, c.Process.Signal(sent))
					}
					require.Equal(t, code, ended(t, c))
				})
			}
		}
	}
}

// next reads a byte.
func next(r io.Reader) error {
	_, err := io.ReadFull(r, make([]byte, 1))
	return err
}

// largeStore makes a store that takes long to pack, to verify and to index.
func largeStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	store, err := lineage.Open(t.Context(), dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("%x", random.Uint64N(1<<20)) }
	for range 40 {
		thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
		require.NoError(t, err)
		active, err := thread.Active(t.Context())
		require.NoError(t, err)
		items := make([]lineage.Item, 1000)
		for i := range items {
			var text strings.Builder
			for range 80 {
				text.WriteString(word() + " ")
			}
			items[i] = lineage.User(text.String())
		}
		_, err = active.Extend(t.Context(), items...)
		require.NoError(t, err)
	}
	require.NoError(t, store.Close())
	return dir
}

// endlessly writes conversations until nobody reads them.
func endlessly(w io.WriteCloser) {
	for i := 0; ; i++ {
		if _, err := fmt.Fprintf(w, `{"id":"c%d","messages":[{"role":"user","content":"And Porto? %d"}]}`+"\n", i, i); err != nil {
			return
		}
	}
}

// Commands that would work for long end with the first signal, and the store is whole.
func TestSignalsEndCommands(t *testing.T) {
	large := largeStore(t)
	for _, line := range []string{
		"import -", "pack --dense", "verify --deep", "search word",
	} {
		for sent, code := range signalCodes {
			t.Run(line+" "+sent.String(), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				require.NoError(t, os.CopyFS(dir, os.DirFS(large)))
				c := command(t, "lineage", append(strings.Fields(line), "--store", dir)...)
				in, err := c.StdinPipe()
				require.NoError(t, err)
				defer in.Close()
				var errOut strings.Builder
				c.Stderr = &errOut
				require.NoError(t, c.Start())
				if line == "import -" {
					go endlessly(in)
				}
				atWork(t, dir)
				require.NoError(t, c.Process.Signal(sent))
				require.Equal(t, code, ended(t, c), errOut.String())
				require.Contains(t, errOut.String(), "lineage: interrupted")

				got := runLine(context.Background(), "verify", "--store", dir)
				require.Equal(t, 0, got.code, got.err)
			})
		}
	}
}

// A process that waits for more input with the store open ends when it is interrupted.
func TestInterruptedProcess(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	// What something is imported of: more than tells its format.
	text := strings.Repeat(`{"messages":[{"role":"user","content":"And Porto?"}]}`+"\n", 2<<10)
	for name, source := range map[string]string{"standard input": "-", "a pipe": pipe} {
		t.Run(name, func(t *testing.T) {
			dir := newStore(t)
			c := command(t, "lineage", "import", source, "--store", dir)
			in, err := c.StdinPipe()
			require.NoError(t, err)
			defer in.Close()
			require.NoError(t, c.Start())
			if source == pipe {
				f, err := os.OpenFile(pipe, os.O_RDWR, 0)
				require.NoError(t, err)
				defer f.Close()
				in = f
			}
			_, err = io.WriteString(in, text)
			require.NoError(t, err)
			atWork(t, dir)
			require.NoError(t, c.Process.Signal(os.Interrupt))
			require.Equal(t, app.ExitInterrupted, ended(t, c))
		})
	}
}

// Commands that run until a signal stops them have not failed then, also two of them on one store.
func TestSignalsStopWhatRunsUntilThen(t *testing.T) {
	for _, line := range []string{"follow", "follow --json", "serve --no-http", "serve --follow --no-http"} {
		for sent := range signalCodes {
			t.Run(line+" "+sent.String(), func(t *testing.T) {
				ownHome(t)
				session := filepath.Join(os.Getenv("HOME"), ".claude", "projects", "-src", "00000001-0000-4000-8000-000000000001.jsonl")
				require.NoError(t, os.MkdirAll(filepath.Dir(session), 0o700))
				require.NoError(t, os.WriteFile(session, []byte(aSession), 0o600))
				dir := newStore(t)
				stops := []func(){runsUntil(t, sent, line, dir), runsUntil(t, sent, "follow", dir)}
				for _, stop := range stops {
					stop()
				}
				got := runLine(t.Context(), "verify", "--store", dir)
				require.Equal(t, 0, got.code, got.err)
			})
		}
	}
}

// runsUntil starts a command, and waits until it does nothing but wait. stop sends it a signal, and expects that it ends
// well, and that a follower says what it did.
func runsUntil(t *testing.T, sent syscall.Signal, line, dir string) (stop func()) {
	t.Helper()
	c := command(t, "lineage", append(strings.Fields(line), "--store", dir, "--wait", "1h")...)
	out := &notifyingBuffer{wrote: make(chan string, 100)}
	var messages bytes.Buffer
	c.Stdout, c.Stderr = out, &messages
	require.NoError(t, c.Start())
	if !strings.Contains(line, "follow") {
		atWork(t, dir)
	}
	for printed := ""; strings.Contains(line, "follow") && !waits.MatchString(printed); {
		printed += <-out.wrote
	}
	return func() {
		require.NoError(t, c.Process.Signal(sent))
		require.Equal(t, app.ExitOK, ended(t, c), messages.String())
		require.Empty(t, messages.String())
		close(out.wrote)
		printed := ""
		for text := range out.wrote {
			printed += text
		}
		if strings.Contains(line, "follow") && !strings.Contains(line, "--json") {
			require.Regexp(t, `^stopped: \d new messages? since the start\n$`, printed)
		} else {
			require.Empty(t, printed)
		}
	}
}

// waits matches what a follower prints when it has read everything.
var waits = regexp.MustCompile(`read 1 session: \d new messages?|nothing is new|"event":"waiting"`)

// Of two followers that find no store, the one that creates it says so.
func TestFollowersCreateOneStore(t *testing.T) {
	for range 5 {
		ownHome(t)
		t.Chdir(os.Getenv("HOME"))
		var runs []*exec.Cmd
		var outs [2]bytes.Buffer
		for i := range outs {
			c := command(t, "lineage", "follow", "--once", "--wait", "1h")
			c.Stdout, c.Stderr = &outs[i], &outs[i]
			require.NoError(t, c.Start())
			runs = append(runs, c)
		}
		said := 0
		for i, c := range runs {
			require.Equal(t, app.ExitOK, ended(t, c), outs[i].String())
			said += strings.Count(outs[i].String(), "created a store in ")
		}
		require.Equal(t, 1, said, "%s\n%s", outs[0].String(), outs[1].String())
	}
}
