package embedded

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/lineage/backend"
)

// flip changes a byte of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	campaign.Flip(t, path, at, 0x10)
}

// After any flipped byte in a segment, the store does not open for writing or
// verification finds the damage.
//
//test:norace
func TestVerifyFindsFlippedBytesInTheJournal(t *testing.T) {
	dir := made(t, Options{SegmentSize: 4 << 10}, 80)
	names := segments(t, dir)
	require.Greater(t, len(names), 3)
	for _, name := range []string{names[0], names[len(names)/2], names[len(names)-1]} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		for at := int64(0); at < info.Size(); at += info.Size()/23 + 1 {
			flip(t, name, at)
			requireDamage(t, dir, fmt.Sprintf("byte %d of %s", at, filepath.Base(name)))
			flip(t, name, at)
		}
	}
	e := reopen(t, dir, Options{})
	requireMessages(t, e, 80)
	require.Empty(t, findings(t, e, true))
}

// requireDamage requires damage in the journal to be reported when opening and
// by both kinds of verification.
func requireDamage(t *testing.T, dir, what string) {
	t.Helper()
	e, err := Open(background, dir, Options{SegmentSize: 4 << 10})
	if err != nil {
		require.ErrorIs(t, err, backend.ErrCorrupt, what)
		if e, err = Open(background, dir, Options{ReadOnly: true}); err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt, what)
			return
		}
	}
	for _, deep := range []bool{false, true} {
		found := findings(t, e, deep)
		require.NotEmpty(t, found, what)
		require.Equal(t, "journal", found[0].Subject, what)
		require.NotEmpty(t, found[0].File, what)
	}
	require.NoError(t, e.Close())
}

// Flipped bytes in the index are found too. Nothing is lost, because the index
// is rebuilt.
//
//test:norace
func TestFlippedBytesInTheIndex(t *testing.T) {
	dir := made(t, Options{}, 60)
	path := filepath.Join(dir, indexFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	sums, err := os.ReadFile(path + ".sums")
	require.NoError(t, err)
	for at := int64(3); at < int64(len(good)); at += int64(len(good))/80 + 1 {
		require.NoError(t, os.WriteFile(path, good, 0o600))
		require.NoError(t, os.WriteFile(path+".sums", sums, 0o600))
		flip(t, path, at)
		var log []string
		e, err := Open(background, dir, Options{Logger: logline.New(slog.LevelDebug, func(m string) { log = append(log, m) })})
		require.NoError(t, err, "byte %d", at)
		if strings.Contains(strings.Join(log, "\n"), "index is rebuilt") {
			requireMessages(t, e, 60)
			require.Empty(t, findings(t, e, true))
		} else {
			found := findings(t, e, true)
			require.NotEmpty(t, found, "byte %d", at)
			for _, f := range found {
				require.Equal(t, "index", f.Subject)
				require.Equal(t, backend.RebuildIndex, f.Repair)
			}
		}
		require.NoError(t, e.Close(), "byte %d", at)
	}
}

// Damage in an index that is behind the journal is found during replay.
//
//test:norace
func TestFlippedBytesInAnIndexThatIsBehind(t *testing.T) {
	dir := made(t, Options{}, 60)
	path := filepath.Join(dir, indexFile)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, fill(t, dir, Options{}, 90).Close())
	require.NoError(t, os.Remove(path+".sums"))
	remade := 0
	for at := int64(3); at < int64(len(old)); at += int64(len(old))/100 + 1 {
		require.NoError(t, os.WriteFile(path, old, 0o600))
		flip(t, path, at)
		var log []string
		e, err := Open(background, dir, Options{Logger: logline.New(slog.LevelDebug, func(m string) { log = append(log, m) })})
		require.NoError(t, err, "byte %d", at)
		if strings.Contains(strings.Join(log, "\n"), "index is rebuilt") {
			remade++
			requireMessages(t, e, 90)
			require.Empty(t, findings(t, e, true))
			require.NoError(t, e.Close())
		} else {
			e.Close() // Close may report damage that nothing has read so far
		}
	}
	require.Positive(t, remade)
}

func TestUnusableIndex(t *testing.T) {
	dir := made(t, Options{}, 20)
	path := filepath.Join(dir, indexFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	page := os.Getpagesize()
	for name, bad := range map[string][]byte{
		"garbage":  []byte(strings.Repeat("garbage ", 4<<10)),
		"short":    []byte("x"),
		"cut off":  good[:3*page],
		"zeros":    make([]byte, len(good)),
		"headless": append(make([]byte, 2*page), good[2*page:]...),
		"moved":    append(good[2*page:], make([]byte, 2*page)...),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			var log []string
			e := reopen(t, dir, Options{Logger: logline.New(slog.LevelDebug, func(m string) { log = append(log, m) })})
			require.Contains(t, strings.Join(log, "\n"), "index is rebuilt")
			requireMessages(t, e, 20)
			require.Empty(t, findings(t, e, true))
		})
	}
}

// A changed index entry is found, however it was changed.
//
//test:norace
func TestVerifyFindsWrongEntries(t *testing.T) {
	dir := made(t, Options{}, 200)
	path := filepath.Join(dir, indexFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	tables := map[byte][]index.Entry{}
	db, err := index.Open(path, index.Options{})
	require.NoError(t, err)
	state := db.State()
	s := db.Snapshot()
	for e, err := range s.Scan(nil, nil) {
		require.NoError(t, err)
		tables[e.Key[0]] = append(tables[e.Key[0]], e)
	}
	s.Close()
	require.NoError(t, db.Close())
	require.Greater(t, len(tables), 6)

	t.Run("counts", func(t *testing.T) {
		require.NoError(t, os.WriteFile(path, good, 0o600))
		db, err := index.Open(path, index.Options{})
		require.NoError(t, err)
		wrong := state
		wrong.Counts[0]++
		db.Apply(wrong, []index.Entry{tables[keys.TableThread][0]})
		require.NoError(t, db.Close())
		found := findings(t, reopen(t, dir, Options{}), true)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Problem, "counts")
		require.Equal(t, backend.RebuildIndex, found[0].Repair)
	})
	check := func(name, problem string, entry index.Entry) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, good, 0o600))
			db, err := index.Open(path, index.Options{})
			require.NoError(t, err)
			db.Apply(state, []index.Entry{entry})
			require.NoError(t, db.Close())
			e := reopen(t, dir, Options{})
			require.Empty(t, findings(t, e, false), "the fast check reads the journal")
			found := findings(t, e, true)
			require.Len(t, found, 1)
			require.Equal(t, "index", found[0].Subject)
			require.Equal(t, fmt.Sprintf("%c:%x", entry.Key[0], entry.Key[1:]), found[0].ID)
			require.Contains(t, found[0].Problem, problem)
			require.Equal(t, backend.RebuildIndex, found[0].Repair)
		})
	}
	for table, entries := range tables {
		e := entries[len(entries)/2]
		check(fmt.Sprintf("removed from %c", table), "missing", index.Entry{Key: e.Key})
		check(fmt.Sprintf("added to %c", table), "does not account for", index.Entry{Key: append(e.Key[:len(e.Key):len(e.Key)], 'x'), Value: e.Value})
		check(fmt.Sprintf("changed in %c", table), "differs", index.Entry{Key: e.Key, Value: append(e.Value[:len(e.Value):len(e.Value)], 1)})
	}
}
