//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// TestServe keeps a store open, which other commands use, and ends when nobody has used it for some
// time.
func TestServe(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan int, 1)
	go func() {
		a := app.New(strings.NewReader(""), &bytes.Buffer{}, os.Stderr, func(string) string { return "" })
		done <- execute(ctx, a, []string{"serve", "--store", dir})
	}()
	atWork(t, dir)
	got := runLine(t.Context(), "info", "--json", "--store", dir)
	require.Equal(t, 0, got.code, got.err)
	var record records.Info
	require.NoError(t, json.Unmarshal([]byte(got.out), &record))
	require.NotNil(t, record.Owner)
	require.Equal(t, os.Getpid(), record.Owner.PID)
	for _, line := range [][]string{
		{"append", "more"}, {"gc", "--yes"}, {"pack"}, {"verify", "--deep"}, {"backup", filepath.Join(t.TempDir(), "copy")}, {"search", "more"},
	} {
		got := runLine(t.Context(), append(line, "--store", dir)...)
		require.Equal(t, 0, got.code, "%v: %s", line, got.err)
	}
	stop()
	require.Equal(t, app.ExitOK, <-done)
	require.Equal(t, 0, runLine(t.Context(), "serve", "--idle", "10ms", "--store", dir).code)
}

// TestServeTakesOver serves a store that another process has open. When that one closes it, serving
// goes on at once, although nobody asks for anything. Meanwhile nothing repairs the store.
func TestServeTakesOver(t *testing.T) {
	ownHome(t)
	dir := newStore(t)
	first, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	c := command(t, "lineage", "serve", "--store", dir, "--wait", "1h")
	require.NoError(t, c.Start())
	require.Eventually(t, func() bool {
		all, err := first.Processes(t.Context())
		return err == nil && len(all.Guests) == 1
	}, soon, 5*time.Millisecond)
	require.Equal(t, app.ExitLocked, runLine(t.Context(), "repair", "--store", dir, "--wait", "0s").code)
	require.NoError(t, first.Close())
	atWork(t, dir)
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.Wait())
	require.Equal(t, 0, runLine(t.Context(), "repair", "--store", dir).code)
}

// ownHome gives the process folders of its own for the user's configuration and sockets.
func ownHome(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
}

// atWork waits until a process has a store open. It does not open the store itself: then it
// would be the owner for a while, and the process its guest.
func atWork(t *testing.T, dir string) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer lock.Close()
	require.Eventually(t, func() bool {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			err = syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
		}
		return errors.Is(err, syscall.EWOULDBLOCK)
	}, soon, 5*time.Millisecond)
}
