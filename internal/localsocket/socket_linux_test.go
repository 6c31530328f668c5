package localsocket

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without /proc, a directory with a long path cannot have a socket. Any other can.
func TestWithoutProc(t *testing.T) {
	short := t.TempDir()
	long := filepath.Join(short, strings.Repeat("long", 30))
	require.NoError(t, os.Mkdir(long, 0o700))
	l, err := Listen(long, "a")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	before := openFiles
	openFiles = filepath.Join(short, "missing")
	defer func() { openFiles = before }()
	_, err = Listen(long, "b")
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = Dial(long, "b")
	require.ErrorIs(t, err, ErrUnsupported)
	l, err = Listen(short, "c")
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
