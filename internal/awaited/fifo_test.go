//go:build unix

package awaited

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

func TestOpeningAPipeEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	path := fifo(t)
	time.AfterFunc(10*time.Millisecond, func() { cancel(errEnough) })
	_, err := Open(ctx, path)
	require.ErrorIs(t, err, errEnough)
	w, err := os.OpenFile(path, os.O_RDWR, 0) // unblocks the pending open
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func TestReadingAPipeEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	path := fifo(t)
	writer := make(chan *os.File, 1)
	go func() {
		w, _ := os.OpenFile(path, os.O_WRONLY, 0)
		w.WriteString("text")
		writer <- w
	}()
	r, err := Open(ctx, path)
	require.NoError(t, err)
	defer r.Close()
	w := <-writer
	defer w.Close()
	got := make([]byte, 4)
	_, err = io.ReadFull(r, got)
	require.NoError(t, err)
	require.Equal(t, "text", string(got))
	time.AfterFunc(10*time.Millisecond, func() { cancel(errEnough) })
	_, err = r.Read(got)
	require.ErrorIs(t, err, errEnough)
}
