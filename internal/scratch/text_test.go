package scratch

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A text is what was written, in whatever pieces, and leaves no file.
func TestText(t *testing.T) {
	temporary(t)
	rapid.Check(t, func(t *rapid.T) {
		w := TextWriter{Most: rapid.IntRange(0, 100).Draw(t, "in memory")}
		defer w.Close()
		var want []byte
		for _, piece := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 50), 0, 8).Draw(t, "pieces") {
			w.Write(piece)
			want = append(want, piece...)
			require.Equal(t, len(want), w.Len())
		}
		text, err := w.Text()
		require.NoError(t, err)
		runtime.GC()
		require.True(t, bytes.Equal(want, text.Bytes()))
		require.Equal(t, w.Most > 0 && len(want) > w.Most && runtime.GOOS != "windows", text.Mapped())
		runtime.KeepAlive(text)
		require.Empty(t, leftIn(t))
	})
}

// leftIn returns what is in the directory of the user.
func leftIn(t require.TestingT) []string {
	left, err := filepath.Glob(filepath.Join(homeName(0), "*"))
	require.NoError(t, err)
	return left
}

// A text that no file can be made for is in memory, and so is one whose file cannot be written any more.
func TestTextWithoutFile(t *testing.T) {
	dir := temporary(t)
	gone := filepath.Join(dir, "gone")
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, gone)
	}
	w := TextWriter{Most: 1}
	w.Write([]byte("one"))
	require.NoError(t, os.Mkdir(gone, 0o700))
	w.Write([]byte(" two"))
	text, err := w.Text()
	require.NoError(t, err)
	require.Equal(t, "one two", string(text.Bytes()))
	require.False(t, text.Mapped())

	w = TextWriter{Most: 1}
	w.Write([]byte("one"))
	name := w.file.Name()
	require.NoError(t, w.file.File.Close())
	w.file.File, err = os.Open(name) // it can be read, and not written
	require.NoError(t, err)
	w.Write([]byte(" two"))
	text, err = w.Text()
	require.NoError(t, err)
	require.Equal(t, "one two", string(text.Bytes()))
	require.Empty(t, leftIn(t))

	w = TextWriter{Most: 1}
	w.Write([]byte("one"))
	require.NoError(t, w.file.File.Close())
	w.Write([]byte(" two"))
	_, err = w.Text()
	require.Error(t, err, "what was in the file is lost")
}
