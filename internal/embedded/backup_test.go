package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// requireBackup opens a backup and requires it to be a store with so many
// messages.
func requireBackup(t *testing.T, dir string, messages uint64) {
	t.Helper()
	e, err := Open(background, dir, Options{MustExist: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	requireMessages(t, e, messages)
	require.Empty(t, findings(t, e, true))
}

//test:norace
func TestBackup(t *testing.T) {
	for _, messages := range []uint64{0, 1, 400} {
		t.Run(fmt.Sprint(messages), func(t *testing.T) {
			room := t.TempDir()
			e := fill(t, filepath.Join(room, "store"), Options{SegmentSize: 8 << 10}, messages)
			defer e.Close()
			var last, total int64
			to := filepath.Join(room, "deep", "backup")
			report, err := e.Backup(background, to, backend.BackupOptions{Progress: func(done, of int64) {
				require.Greater(t, done, last)
				last, total = done, of
			}})
			require.NoError(t, err)
			require.Equal(t, messages, report.Commit)
			require.Equal(t, total, last)
			require.Equal(t, total, report.Bytes)
			restored := filepath.Join(room, "restored")
			again, err := Restore(background, to, restored, RestoreOptions{})
			require.NoError(t, err)
			require.Equal(t, report, again)
			if messages > 0 {
				requireBackup(t, restored, messages)
				requireBackup(t, to, messages)
			}
			require.Equal(t, []string{"backup"}, namesIn(t, filepath.Join(room, "deep")))

			// The copy can be written to independently.
			copied, err := Open(background, restored, Options{})
			require.NoError(t, err)
			require.Equal(t, e.StoreID(), copied.StoreID())
			_, err = copied.Apply(background, message(messages+1), backend.Options{})
			require.NoError(t, err)
			require.NoError(t, copied.Close())
		})
	}
}

// A backup that runs during writes, packing and collections is one consistent
// state.
func TestBackupDuringWrites(t *testing.T) {
	room := t.TempDir()
	e := fill(t, filepath.Join(room, "store"), Options{SegmentSize: 8 << 10, Durability: backend.Normal}, 50)
	defer func() { require.NoError(t, e.Close()) }()
	working, ended := context.WithCancel(background)
	stop := make(chan struct{})
	written := uint64(50)
	go func() {
		defer ended()
		for n := uint64(51); ; n++ {
			select {
			case <-stop:
				written = n - 1
				return
			default:
			}
			if _, err := e.Apply(background, message(n), backend.Options{}); err != nil {
				t.Errorf("message %d: %v", n, err)
				return
			}
			if n%100 == 0 {
				if _, err := e.Collect(background, backend.CollectOptions{}); err != nil {
					t.Errorf("collect: %v", err)
				}
			}
		}
	}()
	var commits []uint64
	last := uint64(50)
	more := func() {
		_, err := e.Wait(working, backend.Cursor{Number: last + 30})
		require.NoError(t, err)
	}
	for i := range 5 {
		more()
		report, err := e.Backup(background, filepath.Join(room, fmt.Sprint(i)), backend.BackupOptions{})
		require.NoError(t, err)
		last = report.Commit
		commits = append(commits, last)
	}
	more()
	close(stop)
	<-working.Done()
	require.Less(t, commits[4], written)
	for i, commit := range commits {
		dir := filepath.Join(room, "restored", fmt.Sprint(i))
		_, err := Restore(background, filepath.Join(room, fmt.Sprint(i)), dir, RestoreOptions{})
		require.NoError(t, err)
		requireBackup(t, dir, commit)
	}
}

func TestBackupIsRefused(t *testing.T) {
	room := t.TempDir()
	e := fill(t, filepath.Join(room, "store"), Options{}, 3)
	defer e.Close()
	taken := filepath.Join(room, "taken")
	require.NoError(t, os.MkdirAll(taken, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(taken, "notes"), []byte("mine"), 0o600))
	_, err := e.Backup(background, taken, backend.BackupOptions{})
	require.ErrorIs(t, err, backend.ErrExists)
	require.Equal(t, []string{"notes"}, namesIn(t, taken))
	_, err = e.Backup(background, filepath.Join(taken, "notes"), backend.BackupOptions{})
	require.Error(t, err)

	ctx, cancel := context.WithCancelCause(background)
	off := errors.New("canceled")
	cancel(off)
	_, err = e.Backup(ctx, filepath.Join(room, "backup"), backend.BackupOptions{})
	require.ErrorIs(t, err, off)
	require.Equal(t, []string{"store", "taken"}, namesIn(t, room))

	// A store that is open in another process is not restored, nor is a directory
	// that is no store.
	_, err = Restore(background, filepath.Join(room, "store"), filepath.Join(room, "restored"), RestoreOptions{})
	require.ErrorIs(t, err, backend.ErrLocked)
	_, err = Restore(background, taken, filepath.Join(room, "restored"), RestoreOptions{})
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.NoError(t, e.Close())
	_, err = Restore(background, filepath.Join(room, "store"), taken, RestoreOptions{})
	require.ErrorIs(t, err, backend.ErrExists)
	_, err = Restore(background, filepath.Join(room, "store"), filepath.Join(room, "restored"), RestoreOptions{})
	require.NoError(t, err)
	requireBackup(t, filepath.Join(room, "restored"), 3)
}

// Restoring a backup with any changed byte, or cut at any length, fails and leaves
// nothing.
func TestDamagedBackup(t *testing.T) {
	room := t.TempDir()
	e := fill(t, filepath.Join(room, "store"), Options{SegmentSize: 4 << 10}, 40)
	require.NoError(t, e.journal.Seal())
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	for n := uint64(41); n <= 60; n++ {
		_, err := e.Apply(background, message(n), backend.Options{})
		require.NoError(t, err)
	}
	from := filepath.Join(room, "backup")
	_, err = e.Backup(background, from, backend.BackupOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	choose := rand.New(rand.NewPCG(1, 1))
	files := namesIn(t, filepath.Join(from, journalDir))
	require.Greater(t, len(files), 1)
	to := filepath.Join(room, "restored")
	for _, name := range files {
		path := filepath.Join(from, journalDir, name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for range 6 {
			b := append([]byte(nil), whole...)
			if choose.IntN(3) == 0 {
				b = b[:choose.IntN(len(b))]
			} else {
				b[choose.IntN(len(b))] ^= byte(1 + choose.IntN(255))
			}
			require.NoError(t, os.WriteFile(path, b, 0o600))
			_, err := Restore(background, from, to, RestoreOptions{})
			require.ErrorIs(t, err, backend.ErrCorrupt)
			require.NoFileExists(t, to)
		}
		require.NoError(t, os.Remove(path))
		_, err = Restore(background, from, to, RestoreOptions{})
		require.Error(t, err)
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	path := filepath.Join(from, manifestFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	otherStore := regexp.MustCompile(`"store":\s*"[0-9a-f]{32}"`).ReplaceAll(whole, []byte(`"store":"00000000000000000000000000000000"`))
	require.NotEqual(t, whole, otherStore)
	for _, bad := range []string{"{}", `{"format":1}`, `{"format":-1}`, "null", string(otherStore)} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err = Restore(background, from, to, RestoreOptions{})
		require.ErrorIs(t, err, backend.ErrCorrupt, bad)
		require.ErrorContains(t, err, manifestFile)
		require.NoFileExists(t, to)
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	for _, bad := range []string{"", "{", `{"format":2}`, `{"format":1,"files":[{"name":"../../LOCK","size":0}]}`} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err = Restore(background, from, to, RestoreOptions{})
		require.Error(t, err)
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	require.NotContains(t, strings.Join(namesIn(t, room), " "), "partial")
	_, err = Restore(background, from, to, RestoreOptions{})
	require.NoError(t, err)
	requireBackup(t, to, 60)
}

// backupVariable names the store that the test binary writes to and backs up until
// it is killed.
const backupVariable = "EMBEDDED_TEST_BACKUP"

func backUpForEver(dir string) int {
	e, err := Open(background, filepath.Join(dir, "store"), Options{Durability: backend.Normal, SegmentSize: 16 << 10})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	head, _ := e.Head(background)
	for n := head.Number + 1; ; n++ {
		if _, err := e.Apply(background, message(n), backend.Options{}); err != nil {
			fmt.Println(err)
			return 1
		}
		if n%50 != 0 {
			continue
		}
		report, err := e.Backup(background, filepath.Join(dir, fmt.Sprint("backup", n)), backend.BackupOptions{})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(report.Commit)
	}
}

// A process is killed during a backup. Every directory with the name of a backup
// is complete.
func TestKillDuringBackup(t *testing.T) {
	for round := range 3 {
		room := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), backupVariable+"="+room)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		line := make([]byte, 16)
		_, err = io.ReadAtLeast(out, line, 1)
		require.NoError(t, err)
		time.Sleep(time.Duration(round*7) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		whole := 0
		for _, name := range namesIn(t, room) {
			if !strings.HasPrefix(name, "backup") || strings.Contains(name, "partial") {
				continue
			}
			report, err := Restore(background, filepath.Join(room, name), filepath.Join(room, "restored", name), RestoreOptions{})
			require.NoError(t, err)
			require.Equal(t, strings.TrimPrefix(name, "backup"), fmt.Sprint(report.Commit))
			whole++
		}
		require.NotZero(t, whole)
		e := reopen(t, filepath.Join(room, "store"), Options{})
		require.Empty(t, findings(t, e, true))
	}
}

func FuzzReadManifest(f *testing.F) {
	whole, err := json.Marshal(manifest{Format: 1, Store: "00", Commit: 3, Files: []manifestFact{{Name: "0000000001.seg", Size: 64, SHA256: "00"}}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(`{"format":1,"files":[{"name":"../0000000001.seg","size":-1}]}`))
	f.Add([]byte(`{"format":9}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, journalDir), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, journalDir, "0000000001.seg"), make([]byte, 64), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, manifestFile), b, 0o600))
		names, facts, _, err := readManifest(dir)
		if err != nil {
			return
		}
		for i, name := range names {
			require.Equal(t, filepath.Join(dir, journalDir), filepath.Dir(name))
			require.Equal(t, facts[i].Name, filepath.Base(name))
		}
		_, err = Restore(background, dir, filepath.Join(t.TempDir(), "restored"), RestoreOptions{})
		require.Error(t, err)
		if len(names) > 0 {
			require.ErrorIs(t, err, backend.ErrCorrupt)
		}
	})
}
