package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// seen has, by cursor, every commit that any follower of any copy of a store ever saw.
type seen map[backend.Cursor]string

// add applies a commit with unique contents.
func (s seen) add(t require.TestingT, e *Engine, says string) {
	receipt, err := e.Apply(background, &structure.Commit{Records: []structure.Record{
		&structure.Thread{ID: structure.NewID[structure.ThreadID](), Title: says},
	}}, backend.Options{Durability: backend.Normal})
	require.NoError(t, err)
	require.NotZero(t, receipt.ID)
	require.NotContains(t, s, receipt.Cursor, "two commits with one number and id")
	s[receipt.Cursor] = says
}

func saysOf(c *structure.Commit) string { return c.Records[0].(*structure.Thread).Title }

// maxContinued is the number of commits that are read after each cursor.
const maxContinued = 3

// check uses every known cursor on a store: the feed continues after cursors of its own
// history, and refuses all others.
func (s seen) check(t require.TestingT, e *Engine) {
	own := make(map[backend.Cursor]bool)
	var last backend.Cursor
	for c, err := range e.Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		last = backend.Cursor{Number: c.Number, ID: c.ID}
		require.Equal(t, saysOf(c), s[last])
		own[last] = true
	}
	head, err := e.Head(background)
	require.NoError(t, err)
	require.Equal(t, last, head)
	require.EqualValues(t, head.Number, len(own))
	for c := range s {
		next := c.Number + 1
		err := error(nil)
		for commit, feedErr := range e.Feed(background, c) {
			if err = feedErr; err != nil {
				break
			}
			require.Equal(t, next, commit.Number)
			if next++; next > c.Number+maxContinued {
				break // the feed from the beginning covers the rest
			}
		}
		if own[c] {
			require.NoError(t, err)
			require.Equal(t, min(head.Number, c.Number+maxContinued)+1, next)
			continue
		}
		require.ErrorIs(t, err, backend.ErrDiverged)
		_, waitErr := e.Wait(background, c)
		require.ErrorIs(t, waitErr, backend.ErrDiverged)
		var diverged *backend.DivergedError
		require.True(t, errors.As(err, &diverged))
		require.Equal(t, c, diverged.After)
		if common := diverged.Common; common.Number > 0 {
			require.True(t, own[common])
			require.Equal(t, c.ID, common.ID, "common commits were written in the same session")
			require.False(t, own[backend.Cursor{Number: common.Number + 1, ID: c.ID}])
		}
	}
}

// Power loss at normal durability loses commits that a follower saw, and other commits get
// their numbers; indexes are lost, segments are sealed and packed. A cursor never
// identifies two commits.
//
//test:norace
func TestCursorsAfterPowerLoss(t *testing.T) {
	room := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(room, "store")
		require.NoError(rt, err)
		disk, all, n := crashfs.New(), seen{}, 0
		var e *Engine
		open := func() {
			e, err = Open(background, dir, Options{FS: disk, SyncInterval: time.Hour, SegmentSize: 4 << 10, NoPacking: true})
			require.NoError(rt, err)
		}
		open()
		defer func() { e.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"apply": func(rt *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(rt, "commits") {
					n++
					all.add(rt, e, rapid.StringN(0, 20, 40).Draw(rt, "title")+string(rune('a'+n%26))+time.Duration(n).String())
				}
			},
			"sync": func(rt *rapid.T) { require.NoError(rt, e.Sync(background)) },
			"fold": func(rt *rapid.T) { require.NoError(rt, e.index.Checkpoint()) },
			"pack": func(rt *rapid.T) {
				_, err := e.Pack(background, backend.PackOptions{All: true})
				require.NoError(rt, err)
			},
			"reopen": func(rt *rapid.T) {
				require.NoError(rt, e.Close())
				if rapid.Bool().Draw(rt, "without index") {
					require.NoError(rt, index.Remove(e.dir.index()))
				}
				open()
			},
			"power loss": func(rt *rapid.T) {
				disk = disk.Crash(crashfs.KeepNone())
				_ = e.Close() // of the dead process
				open()
			},
			"": func(rt *rapid.T) { all.check(rt, e) },
		})
	})
}

// A restored backup and a copy of the files continue under other ids than the original,
// which continues too.
func TestCursorsOfCopies(t *testing.T) {
	room := t.TempDir()
	all := seen{}
	more := func(e *Engine, from string, n int) {
		for i := range n {
			all.add(t, e, from+string(rune('a'+i)))
		}
	}
	open := func(name string) *Engine {
		e, err := Open(background, filepath.Join(room, name), Options{})
		require.NoError(t, err)
		t.Cleanup(func() { e.Close() })
		return e
	}
	original := open("original")
	more(original, "before ", 10)
	_, err := original.Backup(background, filepath.Join(room, "backup"), backend.BackupOptions{})
	require.NoError(t, err)
	more(original, "between ", 5)
	require.NoError(t, original.Sync(background))
	require.NoError(t, os.CopyFS(filepath.Join(room, "copied", "journal"), os.DirFS(filepath.Join(room, "original", "journal"))))
	more(original, "after ", 5)
	_, err = Restore(background, filepath.Join(room, "backup"), filepath.Join(room, "restored"), RestoreOptions{})
	require.NoError(t, err)
	engines := []*Engine{original, open("restored"), open("copied")}
	for i, e := range engines {
		all.check(t, e)
		more(e, "copy "+string(rune('a'+i)), 7)
	}
	for _, e := range engines {
		all.check(t, e)
		requireSound(t, e)
	}
	head, err := original.Head(background)
	require.NoError(t, err)
	err = feedError(engines[1], head)
	var diverged *backend.DivergedError
	require.ErrorAs(t, err, &diverged)
	require.EqualValues(t, 10, diverged.Common.Number, "the backup has ten of its commits")
}

// Commit ids survive when they are only in a pack.
func TestCursorsOfPacks(t *testing.T) {
	dir := t.TempDir()
	all := seen{}
	for session := range 4 {
		e, err := Open(background, dir, Options{NoPacking: true, SegmentSize: 4 << 10})
		require.NoError(t, err)
		for i := range 30 {
			all.add(t, e, string(rune('a'+session))+time.Duration(i).String())
		}
		_, err = e.Pack(background, backend.PackOptions{All: true, Dense: session > 1})
		require.NoError(t, err)
		all.check(t, e)
		require.NoError(t, e.Close())
		require.NoError(t, index.Remove(e.dir.index()))
	}
	e, err := Open(background, dir, Options{})
	require.NoError(t, err)
	defer e.Close()
	all.check(t, e)
	requireSound(t, e)
	_, err = e.Collect(background, backend.CollectOptions{})
	require.NoError(t, err)
	all.check(t, e)
	requireSound(t, e)
}

// feedError returns the error that a feed begins with, if any.
func feedError(e *Engine, after backend.Cursor) error {
	for _, err := range e.Feed(background, after) {
		return err
	}
	return nil
}

// In a journal that is readable only up to damage, a cursor after the damage does not
// indicate another history.
func TestCursorBehindDamage(t *testing.T) {
	dir := t.TempDir()
	e := fill(t, dir, Options{SegmentSize: 4 << 10}, 100)
	head, err := e.Head(background)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, index.Remove(e.dir.index()))
	names, err := filepath.Glob(filepath.Join(dir, journalDir, "*.seg"))
	require.NoError(t, err)
	b, err := os.ReadFile(names[1])
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(names[1], b, 0o600))
	e, err = Open(background, dir, Options{ReadOnly: true})
	require.NoError(t, err)
	defer e.Close()
	require.Error(t, e.Damage())
	err = feedError(e, head)
	require.ErrorIs(t, err, backend.ErrCorrupt)
	require.NotErrorIs(t, err, backend.ErrDiverged)
}
