//test:race

package awaited

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

var errEnough = errors.New("enough")

// asked is a reader that reports when it is read from.
type asked struct {
	io.Reader
	read chan struct{}
}

func (a *asked) Read(p []byte) (int, error) {
	close(a.read)
	return a.Reader.Read(p)
}

func TestReadsWhatThereIs(t *testing.T) {
	text := strings.Repeat("some text ", 100_000)
	require.NoError(t, iotest.TestReader(NewReader(t.Context(), strings.NewReader(text)), []byte(text)))
	broken := NewReader(t.Context(), io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errEnough)))
	got, err := io.ReadAll(broken)
	require.ErrorIs(t, err, errEnough)
	require.Equal(t, "some", string(got))
}

func TestReadingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	silent, writer := io.Pipe()
	defer writer.Close()
	a := &asked{silent, make(chan struct{})}
	r := NewReader(ctx, a)
	go func() {
		<-a.read
		cancel(errEnough)
	}()
	_, err := io.ReadAll(r)
	require.ErrorIs(t, err, errEnough)
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, errEnough, "no further read starts")
}

func TestRegularFilesAreOpenedAsTheyAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	_, err := Open(t.Context(), path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	f, err := Open(t.Context(), path)
	require.NoError(t, err)
	defer f.Close()
	require.IsType(t, &os.File{}, f)
	got, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "text", string(got))
}
