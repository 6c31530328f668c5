package embedded

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A store with an unreadable pack can be opened and written to if its index covers the pack.
func TestStoreWithDamagedPackOpens(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 200)
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	_, err = e.Apply(background, message(201), backend.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	packs, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
	require.NoError(t, err)
	require.Len(t, packs, 1)
	info, err := os.Stat(packs[0])
	require.NoError(t, err)
	opened := 0
	for at := info.Size() / 80; at < info.Size(); at += info.Size() / 40 {
		flip(t, packs[0], at)
		for _, o := range []Options{{}, {ReadOnly: true}} {
			e, err := Open(background, dir, o)
			require.NoError(t, err, "byte %d", at)
			head, err := e.Head(background)
			require.NoError(t, err)
			require.EqualValues(t, 201, head.Number)
			require.NoError(t, e.Damage())
			_, err = e.Backup(background, filepath.Join(t.TempDir(), "backup"), backend.BackupOptions{})
			require.ErrorIs(t, err, backend.ErrCorrupt, "byte %d", at)
			require.NoError(t, e.Close())
			opened++
		}
		flip(t, packs[0], at)
	}
	require.Greater(t, opened, 60)
	e = reopen(t, dir, Options{})
	requireMessages(t, e, 201)
	requireSound(t, e)
}

// spoilParity makes a damaged block of a pack unrecoverable.
func spoilParity(t *testing.T, name string) {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	flip(t, name, info.Size()-81) // the checksum of the parity precedes the footers
}

// A damaged block of a pack loses nothing, is reported, and is repaired when everything is
// packed again.
//
//test:norace
func TestDamagedBlockOfAPack(t *testing.T) {
	for _, dense := range []bool{false, true} {
		dir := packedStore(t, backend.PackOptions{All: true, Dense: dense})
		packs, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
		require.NoError(t, err)
		require.Len(t, packs, 1)
		info, err := os.Stat(packs[0])
		require.NoError(t, err)
		for _, at := range []int64{0, 20, 181, info.Size() / 2, info.Size() - 90, info.Size() - 50, info.Size() - 1} {
			flip(t, packs[0], at)
			e, err := Open(background, dir, Options{ReadOnly: true})
			require.NoError(t, err, at)
			requireMessages(t, e, 60)
			require.NoError(t, e.Damage())
			for _, deep := range []bool{false, true} {
				found := findings(t, e, deep)
				require.Len(t, found, 1, at)
				require.Equal(t, packs[0], found[0].File)
				require.Equal(t, "'lineage pack'", found[0].Repair)
			}
			_, err = e.Backup(background, filepath.Join(t.TempDir(), "to"), backend.BackupOptions{})
			require.ErrorIs(t, err, backend.ErrCorrupt)
			require.NoError(t, e.Close())
			flip(t, packs[0], at)
		}
		flip(t, packs[0], 181)
		e := reopen(t, dir, Options{})
		_, err = e.Pack(background, backend.PackOptions{All: true, Dense: dense})
		require.NoError(t, err)
		require.Empty(t, findings(t, e, true))
		requireMessages(t, e, 60)
	}
}

// A pack whose second footer was cut off or short loses nothing, with and without an index.
//
//test:norace
func TestCutPack(t *testing.T) {
	for cut := 1; cut <= 40; cut++ {
		dir := packedStore(t, backend.PackOptions{All: true, Dense: cut%2 == 0})
		packs, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
		require.NoError(t, err)
		require.Len(t, packs, 1)
		info, err := os.Stat(packs[0])
		require.NoError(t, err)
		require.NoError(t, os.Truncate(packs[0], info.Size()-int64(cut)))
		if cut%3 == 0 {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, indexFile)))
		}
		_, without := os.Stat(filepath.Join(dir, indexFile)) // a small dense store has none either
		e, err := Open(background, dir, Options{ReadOnly: true})
		require.NoError(t, err, cut)
		requireMessages(t, e, 60)
		found := findings(t, e, without == nil)
		require.Len(t, found, 1, cut)
		require.Equal(t, packs[0], found[0].File)
		require.Contains(t, found[0].Problem, "bytes are missing")
		require.NoError(t, e.Close())

		to := filepath.Join(t.TempDir(), "salvaged")
		_, err = Salvage(background, dir, to, SalvageOptions{})
		require.NoError(t, err, cut)
		requireMessages(t, reopen(t, to, Options{}), 60)

		e = reopen(t, dir, Options{})
		_, err = e.Pack(background, backend.PackOptions{All: true})
		require.NoError(t, err)
		require.Empty(t, findings(t, e, true), cut)
		requireMessages(t, e, 60)
	}
}

// If a pack cannot be opened, an index that refers to it stays in use.
func TestDamagedHeaderOfAPackKeepsTheIndex(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 200)
	pack := func(all bool) { // with all, existing packs are merged
		_, err := e.Pack(background, backend.PackOptions{All: all})
		require.NoError(t, err)
	}
	pack(true)
	for i := range 200 {
		_, err := e.Apply(background, message(uint64(201+i)), backend.Options{})
		require.NoError(t, err)
	}
	pack(false)
	require.NoError(t, e.Close())
	packs, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
	require.NoError(t, err)
	require.Len(t, packs, 2)
	flip(t, packs[1], 20)
	spoilParity(t, packs[1])
	_, err = Open(background, dir, Options{})
	require.ErrorIs(t, err, backend.ErrCorrupt)
	e, err = Open(background, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer e.Close()
	require.ErrorIs(t, e.Damage(), backend.ErrCorrupt)
	head, err := e.Head(background)
	require.NoError(t, err)
	require.EqualValues(t, 400, head.Number)
}

// Reading a store only up to damage is reported, and such a store cannot be copied.
func TestReadingUpToDamage(t *testing.T) {
	for _, packed := range []bool{false, true} {
		dir := made(t, Options{SegmentSize: 4 << 10, NoPacking: !packed}, 120)
		file := segments(t, dir)[1]
		if packed {
			e := reopen(t, dir, Options{})
			_, err := e.Pack(background, backend.PackOptions{All: true})
			require.NoError(t, err)
			require.NoError(t, e.Close())
			packs, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
			require.NoError(t, err)
			file = packs[0]
			spoilParity(t, file)
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		flip(t, file, info.Size()/3)
		if err := os.Remove(filepath.Join(dir, indexFile)); err != nil {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
		_, err = Open(background, dir, Options{})
		require.ErrorIs(t, err, backend.ErrCorrupt)

		var texts []string
		e, err := Open(background, dir, Options{ReadOnly: true, Logger: logline.New(slog.LevelDebug, func(message string) { texts = append(texts, message) })})
		require.NoError(t, err)
		var damage *backend.CorruptError
		require.ErrorAs(t, e.Damage(), &damage)
		require.Equal(t, file, damage.File)
		require.Contains(t, strings.Join(texts, "\n"), damage.Error())
		head, err := e.Head(background)
		require.NoError(t, err)
		require.Less(t, head.Number, uint64(120))
		if head.Number > 0 {
			requireMessages(t, e, head.Number)
		}

		to := filepath.Join(t.TempDir(), "backup")
		_, err = e.Backup(background, to, backend.BackupOptions{})
		require.ErrorIs(t, err, backend.ErrCorrupt)
		require.NoDirExists(t, to)
		found := findings(t, e, false)
		require.NotEmpty(t, found)
		require.NoError(t, e.Close())
	}
}

// A backup checks the journal, even if the index hides that part of it is missing.
func TestBackupChecksTheJournal(t *testing.T) {
	dir := made(t, Options{SegmentSize: 4 << 10, NoPacking: true}, 120)
	for _, name := range segments(t, dir) {
		info, err := os.Stat(name)
		require.NoError(t, err)
		flip(t, name, info.Size()/2)
		e, err := Open(background, dir, Options{SegmentSize: 4 << 10, NoPacking: true})
		if errors.Is(err, backend.ErrCorrupt) { // the end is checked when it opens
			flip(t, name, info.Size()/2)
			continue
		}
		require.NoError(t, err)
		_, err = e.Backup(background, filepath.Join(t.TempDir(), "backup"), backend.BackupOptions{})
		var damage *backend.CorruptError
		require.ErrorAs(t, err, &damage)
		require.Equal(t, name, damage.File)
		require.NoError(t, e.Close())
		flip(t, name, info.Size()/2)
	}
}

// Readers lock out writers but not each other, and see that a writer asks.
func TestReadersShareTheLock(t *testing.T) {
	dir := made(t, Options{}, 3)
	lock := filepath.Join(dir, LockFile)
	before, err := os.Stat(lock)
	require.NoError(t, err)
	read := func() *Engine {
		e, err := Open(background, dir, Options{ReadOnly: true})
		require.NoError(t, err)
		requireMessages(t, e, 3)
		return e
	}
	first, second := read(), read()
	_, err = Open(background, dir, Options{})
	var locked *backend.LockedError
	require.ErrorAs(t, err, &locked)
	require.True(t, locked.Since.IsZero(), "the named writer is gone")
	if runtime.GOOS == "linux" {
		require.Equal(t, os.Getpid(), locked.PID, "a reader has it open")
		require.NotEmpty(t, locked.Command)
	}
	require.NoError(t, first.Close())
	_, err = Open(background, dir, Options{})
	require.ErrorIs(t, err, backend.ErrLocked)
	require.NoError(t, second.Close())
	after, err := os.Stat(lock)
	require.NoError(t, err)
	require.NotEqual(t, before.ModTime(), after.ModTime(), "readers see that a writer asked")

	writer := reopen(t, dir, Options{})
	_, err = Open(background, dir, Options{ReadOnly: true})
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.PID)
	require.NoError(t, writer.Close())

	// A copy without a lock file can be read too.
	require.NoError(t, os.Remove(lock))
	require.NoError(t, read().Close())
}

// A pack that is cut loses the commits behind the cut. Those of other packs are saved.
//
//test:norace
func TestSalvageOfACutPack(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(background, dir, Options{NoPacking: true})
	require.NoError(t, err)
	random := newRandom(3)
	for _, bytes := range []int{3 << 20, 1 << 20} {
		fillTo(t, e, random, bytes)
		require.NoError(t, e.journal.Seal())
		_, err := e.Pack(background, backend.PackOptions{})
		require.NoError(t, err)
	}
	all := e.journal.Last()
	require.NoError(t, e.Close())
	packs, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
	require.NoError(t, err)
	require.Len(t, packs, 2)
	info, err := os.Stat(packs[0])
	require.NoError(t, err)
	before := all
	for _, cut := range []int64{41, 1 << 19, 3 << 19, info.Size() - 70} {
		require.NoError(t, os.Truncate(packs[0], info.Size()-cut))
		_, err = Open(background, dir, Options{ReadOnly: true})
		require.ErrorIs(t, err, backend.ErrCorrupt)
		require.ErrorContains(t, err, packs[0])
		report, err := Salvage(background, dir, filepath.Join(t.TempDir(), "to"), SalvageOptions{})
		require.NoError(t, err)
		require.EqualValues(t, all, report.Commits+report.Missing)
		require.NotZero(t, report.Losses)
		if cut == 41 {
			require.Zero(t, report.Missing)
			continue
		}
		require.Less(t, report.Commits, before)
		require.GreaterOrEqual(t, report.Commits, all/4, "the second pack is whole")
		before = report.Commits
	}
	require.Less(t, before, all/3, "of the first pack nothing is left")
}
