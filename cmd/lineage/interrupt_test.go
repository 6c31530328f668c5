//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that waits for more input with the store open ends when it is interrupted.
func TestInterruptedProcess(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	// What something is imported of: more than tells its format.
	said := strings.Repeat(`{"messages":[{"role":"user","content":"And Porto?"}]}`+"\n", 2<<10)
	for name, source := range map[string]string{"standard input": "-", "a pipe": pipe} {
		t.Run(name, func(t *testing.T) {
			dir := newStore(t)
			c := exec.Command(os.Args[0])
			c.Args = []string{"lineage", "import", source, "--store", dir}
			c.WaitDelay = time.Minute
			in, err := c.StdinPipe()
			require.NoError(t, err)
			defer in.Close()
			require.NoError(t, c.Start())
			defer c.Process.Kill()
			if source == pipe {
				f, err := os.OpenFile(pipe, os.O_RDWR, 0)
				require.NoError(t, err)
				defer f.Close()
				in = f
			}
			_, err = io.WriteString(in, said)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				return runLine(t.Context(), "log", "--store", dir, "--wait", "0s").code == exitLocked
			}, 10*time.Second, 5*time.Millisecond)
			require.NoError(t, c.Process.Signal(os.Interrupt))
			ended := make(chan struct{})
			go func() {
				c.Wait()
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("it goes on")
			}
			require.Equal(t, exitInterrupted, c.ProcessState.ExitCode())
		})
	}
}
