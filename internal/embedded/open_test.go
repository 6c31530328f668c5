package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

func requireLocked(t *testing.T, dir string, pid int) {
	t.Helper()
	for _, o := range []Options{{}, {ReadOnly: true}} {
		_, err := Open(background, dir, o)
		require.ErrorIs(t, err, backend.ErrLocked)
		var locked *backend.LockedError
		require.ErrorAs(t, err, &locked)
		host, _ := os.Hostname()
		require.Equal(t, dir, locked.Path)
		require.Equal(t, pid, locked.PID)
		require.Equal(t, host, locked.Host)
		require.Contains(t, locked.Command, filepath.Base(os.Args[0]))
		require.False(t, locked.Since.IsZero())
		require.False(t, locked.Since.After(time.Now()))
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	e := fill(t, dir, Options{}, 3)
	requireLocked(t, dir, os.Getpid())
	_, err := e.Apply(background, message(4), backend.Options{})
	require.NoError(t, err, "a refused process leaves no trace")
	require.NoError(t, e.Close())
	requireMessages(t, reopen(t, dir, Options{}), 4)
}

func TestOpenWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	holder := fill(t, dir, Options{}, 3)
	_, err := Open(background, dir, Options{Wait: time.Millisecond})
	require.ErrorIs(t, err, backend.ErrLocked)

	ctx, cancel := context.WithCancelCause(background)
	gone := errors.New("the caller went away")
	_, err = Open(ctx, dir, Options{Wait: time.Hour, Waiting: func(error) { cancel(gone) }})
	require.ErrorIs(t, err, gone)

	waited := 0
	e, err := Open(background, dir, Options{Wait: time.Hour, Waiting: func(held error) {
		waited++
		require.ErrorIs(t, held, backend.ErrLocked)
		require.NoError(t, holder.Close())
	}})
	require.NoError(t, err)
	require.Equal(t, 1, waited)
	requireMessages(t, e, 3)
	require.NoError(t, e.Close())

	e, err = Open(background, dir, Options{Wait: time.Hour, Waiting: func(error) { t.Error("the lock was free") }})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

func TestLockOfAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		holder := startHolder(t, dir)
		requireLocked(t, dir, holder.Process.Pid)
		require.NoError(t, holder.Process.Kill())
		holder.Wait()
		e := fill(t, dir, Options{}, 1)
		requireMessages(t, e, 1)
		require.NoError(t, e.Close())
		dir = t.TempDir()
	}
}

func TestLockFileWithoutOwner(t *testing.T) {
	dir := t.TempDir()
	e := fill(t, dir, Options{}, 1)
	defer e.Close()
	for _, text := range []string{"", "nonsense", "{"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, LockFile), []byte(text), 0o600))
		_, err := Open(background, dir, Options{})
		var locked *backend.LockedError
		require.ErrorAs(t, err, &locked)
		if pid, _ := holder(e.lock.file); pid == 0 { // where the system does not say
			require.Contains(t, err.Error(), "another process")
			continue
		}
		require.Equal(t, os.Getpid(), locked.PID)
		require.NotContains(t, err.Error(), "since")
	}
}

func TestMissingStore(t *testing.T) {
	for _, o := range []Options{{MustExist: true}, {ReadOnly: true}} {
		for _, dir := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
			_, err := Open(background, dir, o)
			require.ErrorIs(t, err, backend.ErrNotFound)
			left, _ := os.ReadDir(dir)
			require.Empty(t, left, "nothing was created")
		}
	}
	e, err := Open(background, filepath.Join(t.TempDir(), "a", "b", "c"), Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

func TestDirectoryWithOtherFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letters.txt"), nil, 0o600))
	_, err := Open(background, dir, Options{})
	require.ErrorIs(t, err, backend.ErrExists)
	require.Contains(t, err.Error(), "letters.txt")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	// In the directory of an existing store, other files are ignored.
	dir = made(t, Options{}, 2)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letters.txt"), nil, 0o600))
	requireMessages(t, reopen(t, dir, Options{}), 2)
	require.FileExists(t, filepath.Join(dir, "letters.txt"))
}

func TestReadOnly(t *testing.T) {
	dir := made(t, Options{}, 300)
	before := tree(t, dir)
	e, err := Open(background, dir, Options{ReadOnly: true, MustExist: true})
	require.NoError(t, err)
	requireMessages(t, e, 300)
	_, err = e.Apply(background, message(301), backend.Options{})
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.NoError(t, e.Sync(background))
	require.Empty(t, findings(t, e, true))
	require.NoError(t, e.Close())
	require.Equal(t, before, tree(t, dir))

	require.NoError(t, os.Remove(filepath.Join(dir, indexFile)))
	before = tree(t, dir)
	e, err = Open(background, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	requireMessages(t, e, 300)
	require.NoError(t, e.Close())
	require.Equal(t, before, tree(t, dir))
}

// tree returns the contents of a store's files, except for the lock file.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == LockFile {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	}))
	return files
}

//test:norace
func TestIndexIsRebuilt(t *testing.T) {
	dir := made(t, Options{SegmentSize: 8 << 10}, 200)
	for _, overlay := range []int64{0, 1} {
		for _, name := range []string{indexFile, indexFile + ".sums"} {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
		var done, total int64
		e := reopen(t, dir, Options{OverlayBytes: overlay, Progress: func(d, of int64) {
			require.LessOrEqual(t, done, d)
			require.LessOrEqual(t, d, of)
			done, total = d, of
		}})
		require.Positive(t, done)
		require.Equal(t, total, done, "progress reaches the total")
		requireMessages(t, e, 200)
		require.Empty(t, findings(t, e, true))
		require.NoError(t, e.Close())
	}
}

//test:norace
func TestIndexOfAnotherStore(t *testing.T) {
	for _, others := range []uint64{1, 20, 100} {
		dir, other := made(t, Options{}, 20), made(t, Options{}, others)
		foreign, err := os.ReadFile(filepath.Join(other, indexFile))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, indexFile), foreign, 0o600))
		var log []string
		e := reopen(t, dir, Options{Logger: logline.New(slog.LevelDebug, func(m string) { log = append(log, m) })})
		require.Contains(t, strings.Join(log, "\n"), "another store")
		requireMessages(t, e, 20)
		require.Empty(t, findings(t, e, true))
	}
}

func TestNewerFormatIsRefusedByName(t *testing.T) {
	dir := made(t, Options{}, 2)
	segment := segments(t, dir)[0]
	b, err := os.ReadFile(segment)
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(b[8:], 7)
	require.NoError(t, os.WriteFile(segment, b, 0o600))
	for range 2 { // the first attempt closed everything
		for _, o := range []Options{{}, {ReadOnly: true}} {
			_, err = Open(background, dir, o)
			require.ErrorIs(t, err, backend.ErrNewerFormat)
			require.Contains(t, err.Error(), "format 7")
		}
	}
}

//test:norace
func TestCommitsOfOtherVersionsAreRefusedByName(t *testing.T) {
	for version, why := range map[byte]error{1: backend.ErrOlderFormat, 200: backend.ErrNewerFormat} {
		dir := made(t, Options{}, 2)
		j, err := journal.Open(filepath.Join(dir, journalDir), journal.Options{})
		require.NoError(t, err)
		_, err = j.Append([]byte{version, 0}, nil, false)
		require.NoError(t, err)
		require.NoError(t, j.Close())
		for _, o := range []Options{{}, {ReadOnly: true}} {
			_, err = Open(background, dir, o)
			require.ErrorIs(t, err, why)
			require.Contains(t, err.Error(), fmt.Sprintf("commit version %d", version))
		}
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, journalDir, "*.seg"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

func TestVerificationThatWasKilled(t *testing.T) {
	dir := made(t, Options{}, 2)
	left := filepath.Join(dir, "verify-123")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "x"), 0o700))
	reopen(t, dir, Options{})
	require.NoDirExists(t, left)
}

// A failing disk leaves no incomplete commit, and the failure is reported.
func TestFailingDisk(t *testing.T) {
	disk := crashfs.New()
	dir := t.TempDir()
	e := fill(t, dir, Options{FS: disk}, 5)
	disk.ShortWrite(1, 20, os.ErrPermission)
	_, err := e.Apply(background, message(6), backend.Options{})
	require.ErrorIs(t, err, os.ErrPermission)
	requireMessages(t, e, 5)
	_, err = e.Apply(background, message(6), backend.Options{})
	require.NoError(t, err)
	disk.FailSyncs(os.ErrDeadlineExceeded)
	_, err = e.Apply(background, message(7), backend.Options{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	requireMessages(t, e, 7)
	_, err = e.Apply(background, message(8), backend.Options{})
	require.ErrorIs(t, err, backend.ErrReadOnly)
	require.Error(t, e.Close(), "a possible loss is reported when the store is closed")
	disk.FailSyncs(nil)
	requireMessages(t, reopen(t, dir, Options{FS: disk}), 7)
}
