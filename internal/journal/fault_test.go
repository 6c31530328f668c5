package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

var errDisk = errors.New("disk on fire")

func TestFailedWriteLeavesNothing(t *testing.T) {
	body := payload(3, 300)
	for written := range len(body) + 15 { // up to the whole frame
		t.Run(fmt.Sprint(written), func(t *testing.T) {
			fsys := crashfs.New()
			j := open(t, options(fsys))
			want := payloads(10, 20)
			appendAll(t, j, want...)
			end := j.End()
			fsys.ShortWrite(1, written, errDisk)
			_, err := j.Append(body, nil, false)
			require.ErrorIs(t, err, errDisk)
			require.Equal(t, uint64(2), j.Last())
			require.Equal(t, end, j.End())
			require.Len(t, readFile(t, fsys, segments(fsys)[0]), int(end.Offset))
			require.Zero(t, fsys.UnsyncedOps(), "not even for a disk that lags behind")
			requireStored(t, j, want)
			// The failed commit must not appear in the place of the next one.
			want = append(want, payload(4, 300))
			appendAll(t, j, want[2])
			j = open(t, options(fsys.Crash(crashfs.KeepNone())))
			requireStored(t, j, want[:2])
			j = open(t, options(fsys.Crash(crashfs.KeepAll())))
			requireStored(t, j, want)
		})
	}
}

func TestFailedFirstWriteOfASegment(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(3000, 3000)
	appendAll(t, j, want[0])
	fsys.ShortWrite(6, 4000, errDisk) // after Sync, Create, WriteAt, Sync and SyncDir
	_, err := j.Append(payload(3, 3000), nil, false)
	require.ErrorIs(t, err, errDisk)
	require.Len(t, segments(fsys), 2)
	require.Zero(t, fsys.UnsyncedOps())
	appendAll(t, j, want[1])
	requireStored(t, j, want)
}

// A failed write may be impossible to undo at once. Until it is undone nothing
// may be appended, in any segment.
func TestFailedWriteThatCannotBeUndone(t *testing.T) {
	for _, next := range []int{10, 4000} { // into the same segment, and into a new one
		for written := range 60 {
			fsys := crashfs.New()
			j := open(t, options(fsys))
			want := payloads(10, 500)
			appendAll(t, j, want...)
			fsys.ShortWrite(1, written, errDisk)
			fsys.FailOp(2, errDisk)
			_, err := j.Append(payload(3, 45), nil, false)
			require.ErrorIs(t, err, errDisk)
			requireStored(t, j, want)

			fsys.FailOp(1, errDisk)
			_, err = j.Append(payload(4, next), nil, false)
			require.ErrorIs(t, err, errDisk, "until it is undone")
			want = append(want, payload(5, next))
			appendAll(t, j, want[2])
			requireStored(t, j, want)
			require.NoError(t, j.Close())
			j = open(t, options(fsys))
			requireStored(t, j, want)
			require.NoError(t, j.Close())
		}
	}
}

func TestCloseUndoesAFailedWrite(t *testing.T) {
	fsys := crashfs.New()
	want := payloads(10)
	j := open(t, options(fsys))
	appendAll(t, j, want...)
	require.NoError(t, j.Close())
	j = open(t, options(fsys)) // so that Close has no mark to write
	body := payload(3, 45)
	fsys.ShortWrite(1, 100, errDisk) // all of it
	fsys.FailOp(2, errDisk)
	_, err := j.Append(body, nil, false)
	require.ErrorIs(t, err, errDisk)
	require.NoError(t, j.Close())
	j = open(t, options(fsys))
	requireStored(t, j, want)
}

func TestDiskFull(t *testing.T) {
	for room := range int64(400) {
		fsys := crashfs.New()
		j := open(t, options(fsys))
		want := payloads(100, 3000, 900)
		appendAll(t, j, want[:2]...)
		fsys.SetCapacity(fsys.Used() + room)
		for range 3 { // the last needs a new segment
			_, err := j.Append(want[2], nil, true)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.NotErrorIs(t, err, backend.ErrReadOnly)
			requireStored(t, j, want[:2])
		}
		require.NoError(t, j.Sync(2), "the others are not harmed")
		if room%50 == 0 { // closing and opening need hardly any space
			require.NoError(t, j.Close())
			j = open(t, options(fsys))
			requireStored(t, j, want[:2])
		}
		fsys.SetCapacity(0)
		appendAll(t, j, want[2])
		require.NoError(t, j.Close())
		j = open(t, options(fsys))
		requireStored(t, j, want)
		require.NoError(t, j.Close())
	}
}

func TestFailedSync(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(100, 200, 300)
	appendAll(t, j, want[0])
	require.NoError(t, j.Sync(1))
	appendAll(t, j, want[1:]...)
	fsys.FailSyncs(errDisk)
	err := j.Sync(3)
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	fsys.FailSyncs(nil)

	// A second attempt would succeed without proving anything.
	require.ErrorIs(t, j.Sync(3), errDisk)
	require.NoError(t, j.Sync(1))
	require.Equal(t, uint64(1), j.Durable())
	_, err = j.Append([]byte("x"), nil, false)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	requireStored(t, j, want)
	require.ErrorIs(t, j.Close(), errDisk, "acknowledged commits may be lost")

	// The next Open finds the commits and makes them durable.
	j = open(t, options(fsys))
	requireStored(t, j, want)
	want = append(want, payload(4, 10))
	appendAll(t, j, want[3])
	require.NoError(t, j.Sync(4))
	j = open(t, options(fsys.Crash(crashfs.KeepNone())))
	requireStored(t, j, want)
}

func TestFailedSyncOfRoll(t *testing.T) {
	fsys := crashfs.New()
	j := open(t, options(fsys))
	want := payloads(3000, 3000)
	appendAll(t, j, want[0])
	fsys.FailOp(1, errDisk)
	_, err := j.Append(want[1], nil, false)
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.Len(t, segments(fsys), 1)
	require.Error(t, j.Close())
	j = open(t, options(fsys))
	appendAll(t, j, want[1])
	requireStored(t, j, want)
}

// Each operation of creating a first or another segment fails once. The next
// attempt must succeed and lose nothing.
func TestFailedCreate(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		disk := crashfs.New()
		open(t, options(disk))
		for op := 1; op <= disk.Ops(); op++ {
			fsys := crashfs.New()
			fsys.FailOp(op, errDisk)
			_, err := Open(dir, options(fsys))
			require.ErrorIs(t, err, errDisk)
			j := open(t, options(fsys))
			want := payloads(10)
			appendAll(t, j, want...)
			require.NoError(t, j.Sync(1))
			j = open(t, options(fsys.Crash(crashfs.KeepNone())))
			requireStored(t, j, want)
		}
	})
	t.Run("another", func(t *testing.T) {
		want := payloads(3000, 3000, 10)
		for op := 2; op <= 5; op++ {
			for _, stuck := range []bool{false, op > 2} { // and cannot be removed
				fsys := crashfs.New()
				j := open(t, options(fsys))
				appendAll(t, j, want[0])
				fsys.FailOp(op, errDisk)
				if stuck {
					fsys.FailOp(op+1, errDisk)
				}
				_, err := j.Append(want[1], nil, false)
				require.ErrorIs(t, err, errDisk)
				if op%2 == 0 { // the old segment accepts what fits
					small := [][]byte{want[0], want[2]}
					appendAll(t, j, want[2])
					killed := open(t, options(fsys.Crash(crashfs.KeepAll())))
					requireStored(t, killed, small)
					continue
				}
				appendAll(t, j, want[1:]...)
				require.NoError(t, j.Sync(3))
				j = open(t, options(fsys.Crash(crashfs.KeepNone())))
				requireStored(t, j, want)
			}
		}
	})
}

// Close reports an error if not everything is durable; the mark is optional.
func TestFailedClose(t *testing.T) {
	for name, tc := range map[string]struct {
		ops  []int // Sync, then WriteAt of the mark, then Truncate to undo that
		fail bool
	}{
		"sync":     {ops: []int{1}, fail: true},
		"mark":     {ops: []int{2}},
		"truncate": {ops: []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := crashfs.New()
			o := options(fsys)
			var log logged
			o.Logger = logline.New(slog.LevelDebug, log.add)
			j := open(t, o)
			want := payloads(10, 20)
			appendAll(t, j, want...)
			for _, op := range tc.ops {
				fsys.ShortWrite(op, 5, errDisk)
			}
			err := j.Close()
			if tc.fail {
				require.ErrorIs(t, err, errDisk)
				require.Empty(t, log)
			} else {
				require.NoError(t, err)
				require.Len(t, log, 1)
				require.Contains(t, log[0], errDisk.Error())
			}
			require.NoError(t, j.Close())
			j = open(t, options(fsys))
			requireStored(t, j, want)
		})
	}
}
