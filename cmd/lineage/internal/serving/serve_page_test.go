package serving

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The program that opens the browser is waited for: no process is left in the table of processes.
func TestBrowserIsWaitedFor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks into /proc")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\necho $$ > \"$1\"\n"), 0o700))
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	file := filepath.Join(dir, "opened")
	require.NoError(t, startBrowser(file))
	var pid string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		var whole bool
		pid, whole = strings.CutSuffix(string(text), "\n")
		return err == nil && whole
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + pid)
		return errors.Is(err, fs.ErrNotExist)
	}, time.Minute, time.Millisecond)
}
