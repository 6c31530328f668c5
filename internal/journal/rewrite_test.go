package journal

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var (
	time0  = time.UnixMilli(1700000000000).UTC()
	origin = content.BlockOrigin{Kind: content.OriginUser}
)

// commitPayload is a commit with a block of so many bytes.
func commitPayload(t testing.TB, number, n int) []byte {
	var e structure.Encoder
	b, _, err := e.Encode(&structure.Commit{Time: time0, Records: []structure.Record{
		structure.NewBlock("text/plain", origin, time0, payload(number, n)),
	}})
	require.NoError(t, err)
	return bytes.Clone(b)
}

// filled returns a journal of several segments and their frames.
func filled(t testing.TB, fs *crashfs.FS, commits int) (*Journal, []Frame) {
	j := open(t, options(fs))
	var want [][]byte
	for i := range commits {
		if i%7 == 3 {
			want = append(want, payload(i, 300)) // not the encoding of a commit
		} else {
			want = append(want, commitPayload(t, i, 500))
		}
	}
	appendAll(t, j, want...)
	frames := commitsOf(t, j)
	for i := range frames {
		require.Equal(t, want[i], frames[i].Payload)
	}
	return j, frames
}

func commitsOf(t testing.TB, j *Journal) (out []Frame) {
	t.Helper()
	for f, err := range j.Frames(Position{}) {
		require.NoError(t, err)
		if f.Mark {
			continue
		}
		f.Durable, f.Packed = 0, false
		f.Payload = bytes.Clone(f.Payload)
		out = append(out, f)
	}
	return out
}

func packAll(t testing.TB, j *Journal) RewriteReport {
	t.Helper()
	require.NoError(t, j.Seal())
	s := j.Segments()
	r, err := j.Rewrite(context.Background(), s[0].First, s[len(s)-2].Last, RewriteOptions{})
	require.NoError(t, err)
	return r
}

func TestRewriteKeepsEverything(t *testing.T) {
	fs := crashfs.New()
	j, frames := filled(t, fs, 60)
	v := j.FileSet()
	r := packAll(t, j)
	require.EqualValues(t, 60, r.Commits)
	require.Equal(t, frames, commitsOf(t, j))
	require.Len(t, j.Segments(), 2)
	names, err := fs.List(dir)
	require.NoError(t, err)
	require.Greater(t, len(names), 3, "the old view still has the old files")
	old := v.NewReader()
	for _, f := range frames {
		got, err := old.Frame(f.Position)
		require.NoError(t, err)
		require.Equal(t, f.Payload, got.Payload)
	}
	v.Release()
	names, err = fs.List(dir)
	require.NoError(t, err)
	require.Equal(t, []string{layout.Name(1, j.Segments()[0].Last, 0), path.Base(j.Segments()[1].Name)}, names)

	// It can be written to, packed again and reopened.
	more := appendAll(t, j, commitPayload(t, 100, 100), commitPayload(t, 101, 100))
	packAll(t, j)
	r2 := j.NewReader()
	for _, f := range frames {
		got, err := r2.Frame(f.Position)
		require.NoError(t, err)
		require.Equal(t, f.Payload, got.Payload)
	}
	want := commitsOf(t, j)
	require.Len(t, want, 62)
	require.Equal(t, more[1].Position, want[61].Position)
	require.NoError(t, j.Close())
	j = open(t, options(fs))
	require.Equal(t, want, commitsOf(t, j))
	require.EqualValues(t, 62, j.Last())
	appendAll(t, j, payload(3, 10))
	for i, f := range want {
		n := 0
		for g, err := range j.Frames(f.Position) {
			require.NoError(t, err)
			if !g.Mark {
				n++
			}
		}
		require.Equal(t, 63-i, n)
	}
	require.NoError(t, j.Close())
}

func TestRewriteRefuses(t *testing.T) {
	fs := crashfs.New()
	j, frames := filled(t, fs, 30)
	last := j.End().Segment
	for _, bad := range [][2]uint32{{0, 1}, {2, 1}, {1, last}, {last, last}, {1, last + 1}} {
		_, err := j.Rewrite(context.Background(), bad[0], bad[1], RewriteOptions{})
		require.ErrorIs(t, err, backend.ErrInvalid)
	}
	// A rewrite canceled at any point leaves nothing.
	stop := errors.New("stop")
	_, err := j.Rewrite(context.Background(), 1, last-1, RewriteOptions{Prepared: func() error { return stop }})
	require.ErrorIs(t, err, stop)
	ctx, cancel := context.WithCancelCause(context.Background())
	_, err = j.Rewrite(ctx, 1, last-1, RewriteOptions{Progress: func(done, _ int64) {
		if done > 5000 {
			cancel(stop)
		}
	}})
	require.ErrorIs(t, err, stop)
	names, err := fs.List(dir)
	require.NoError(t, err)
	require.Len(t, names, int(last))
	require.Equal(t, frames, commitsOf(t, j))
}

// ending is a context that ends at the n-th call of Err.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// A dense rewrite can be canceled at any point, even after all frames were added, and
// leaves nothing.
func TestDenseRewriteIsCancelled(t *testing.T) {
	fs := crashfs.New()
	j := open(t, options(fs))
	appendAll(t, j, commitPayload(t, 1, 30_000), commitPayload(t, 2, 30_000), commitPayload(t, 3, 30_000))
	require.NoError(t, j.Seal())
	frames := commitsOf(t, j)
	last := j.End().Segment
	for left := 0; ; left += 1 + left/4 {
		_, err := j.Rewrite(&ending{t.Context(), left}, 1, last-1, RewriteOptions{Dense: true})
		if err == nil {
			require.Greater(t, left, 20, "it is checked more often than once per commit")
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		names, err := fs.List(dir)
		require.NoError(t, err)
		require.Len(t, names, int(last))
	}
	require.Equal(t, frames, commitsOf(t, j))
}

// The power or the disk fails at each operation of work that packs.
//
//test:norace
func TestRewriteCrashAtEveryOperation(t *testing.T) {
	work := func(fs *crashfs.FS) (durable uint64) {
		j, err := Open(dir, options(fs))
		if err != nil {
			return 0
		}
		defer j.Close()
		for i := range 30 {
			if _, err := j.Append(commitPayload(t, i, 700), nil, false); err != nil {
				return 0
			}
		}
		if j.Sync(30) != nil {
			return 0
		}
		for _, all := range []bool{false, true, true} {
			last := j.End().Segment - 2
			if all {
				if j.Seal() != nil {
					break
				}
				last = j.End().Segment - 1
			}
			_, _ = j.Rewrite(context.Background(), 1, last, RewriteOptions{})
		}
		return 30
	}
	disk := crashfs.New()
	require.EqualValues(t, 30, work(disk))
	check := func(fs *crashfs.FS, durable uint64) {
		t.Helper()
		j, err := Open(dir, options(fs))
		require.NoError(t, err)
		defer j.Close()
		require.GreaterOrEqual(t, j.Last(), durable)
		n := 0
		for f, err := range j.Frames(Position{}) {
			require.NoError(t, err)
			if !f.Mark {
				require.Equal(t, commitPayload(t, n, 700), f.Payload)
				n++
			}
		}
		require.EqualValues(t, j.Last(), n)
		names, err := fs.List(dir)
		require.NoError(t, err)
		names = slices.DeleteFunc(names, func(n string) bool { return path.Ext(n) == ".cut" })
		require.Len(t, names, len(j.Segments()), "nothing else is left: %v", names)
		_, err = j.Append(commitPayload(t, n, 700), nil, false)
		require.NoError(t, err)
	}
	for _, n := range campaign.Sample(disk.Ops(), 25) {
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		disk := crashfs.New()
		disk.CrashAfter(n, n%3*50)
		durable := work(disk)
		for _, c := range []crashfs.Crash{crashfs.KeepNone(), crashfs.KeepAll(), crashfs.Random(rng), crashfs.Random(rng)} {
			check(disk.Crash(c), durable)
		}
		disk = crashfs.New()
		disk.FailOp(n, errDisk)
		durable = work(disk)
		for _, c := range []crashfs.Crash{crashfs.KeepNone(), crashfs.KeepAll(), crashfs.Random(rng)} {
			check(disk.Crash(c), durable)
		}
	}
}

// If an operation of a rewrite fails, the open journal continues to read, and the rewrite can be repeated.
func TestFailedRewriteChangesNothing(t *testing.T) {
	begin := func() (*crashfs.FS, *Journal) {
		fs := crashfs.New()
		j := open(t, options(fs))
		appendAll(t, j, commitPayload(t, 1, 700), commitPayload(t, 2, 700))
		require.NoError(t, j.Seal())
		return fs, j
	}
	fs, j := begin()
	last, ops := j.End().Segment, fs.Ops()
	packAll(t, j)
	ops = fs.Ops() - ops
	failed := 0
	for n := 1; n <= ops; n++ {
		fs, j := begin()
		want := commitsOf(t, j)
		fs.FailOp(n, errDisk)
		if _, err := j.Rewrite(t.Context(), 1, last-1, RewriteOptions{}); err != nil {
			require.ErrorIs(t, err, errDisk)
			require.False(t, j.Segments()[0].Packed)
			failed++
			require.Equal(t, want, commitsOf(t, j))
			packAll(t, j)
		}
		require.Equal(t, want, commitsOf(t, j))
		require.True(t, j.Segments()[0].Packed)
	}
	require.Greater(t, failed, 4)
}
