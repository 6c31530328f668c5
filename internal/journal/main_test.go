package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

func TestMain(m *testing.M) {
	campaign.Checks(25)
	goleak.VerifyTestMain(m)
}

const dir = "store/journal"

// never is a sync interval longer than any test.
const never = 24 * time.Hour

// options has the smallest segments, and no background syncs.
func options(fsys vfs.FS) Options {
	return Options{FS: fsys, SegmentSize: 4 << 10, SyncInterval: never}
}

func open(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() }) // does nothing if the test closed it
	return j
}

func appendAll(t testing.TB, j *Journal, payloads ...[]byte) []Frame {
	t.Helper()
	var frames []Frame
	for _, p := range payloads {
		next := j.Last() + 1
		f, err := j.Append(p, nil, false)
		require.NoError(t, err)
		require.Equal(t, next, f.Number)
		require.Equal(t, f.Number, j.Last())
		frames = append(frames, f)
	}
	return frames
}

// payload returns n bytes that differ by number.
func payload(number, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(number), byte(number >> 8), byte(number >> 16)}).Read(b)
	return b
}

func payloads(sizes ...int) [][]byte {
	var all [][]byte
	for i, n := range sizes {
		all = append(all, payload(i+1, n))
	}
	return all
}

// stored returns the payloads of all commits, and the error that ended the
// reading.
func stored(j *Journal) ([][]byte, error) {
	var all [][]byte
	for f, err := range j.Frames(Position{}) {
		if err != nil {
			return all, err
		}
		if f.Mark {
			continue
		}
		if f.Number != uint64(len(all)+1) {
			return all, fmt.Errorf("commit %d is the %d. to be read", f.Number, len(all)+1)
		}
		all = append(all, bytes.Clone(f.Payload))
	}
	return all, nil
}

func requireStored(t testing.TB, j *Journal, want [][]byte) {
	t.Helper()
	got, err := stored(j)
	require.NoError(t, err)
	requirePayloads(t, want, got)
}

// requirePayloads compares without printing megabytes.
func requirePayloads(t require.TestingT, want, got [][]byte) {
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, bytes.Equal(want[i], got[i]), "payload of commit %d", i+1)
	}
}

// segments returns the paths of the journal's segments.
func segments(fsys *crashfs.FS) []string {
	var names []string
	for _, name := range fsys.Names() {
		if _, ok := segmentNumber(path.Base(name)); ok && path.Dir(name) == dir {
			names = append(names, name)
		}
	}
	return names
}

func readFile(t testing.TB, fsys *crashfs.FS, name string) []byte {
	t.Helper()
	b, err := fsys.ReadFile(name)
	require.NoError(t, err)
	return b
}

// corruption returns the typed error, which must name a file.
func corruption(t require.TestingT, err error) *backend.CorruptError {
	var corrupt *backend.CorruptError
	require.True(t, errors.As(err, &corrupt), "want corruption, got %v", err)
	require.ErrorIs(t, err, backend.ErrCorrupt)
	require.NotEmpty(t, corrupt.File)
	return corrupt
}

// logged collects the messages of recovery.
type logged []string

func (l *logged) add(message string) { *l = append(*l, message) }

func isClosed(err error) bool { return errors.Is(err, backend.ErrClosed) }
