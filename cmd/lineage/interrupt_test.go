//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that waits for input with the store open ends when it is interrupted.
func TestInterruptedProcess(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
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
