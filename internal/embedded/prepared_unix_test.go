//go:build unix

package embedded

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// replacements are what replaces a file of a prepared store.
var replacements = map[string]func(t *testing.T, path, outside string){
	"link": func(t *testing.T, path, outside string) {
		require.NoError(t, os.Symlink(filepath.Join(outside, "precious"), path))
	},
	"dangling link": func(t *testing.T, path, outside string) {
		require.NoError(t, os.Symlink(filepath.Join(outside, "nothing"), path))
	},
	"link to a directory": func(t *testing.T, path, outside string) {
		require.NoError(t, os.Symlink(filepath.Join(outside, "journal"), path))
	},
	"pipe":      func(t *testing.T, path, _ string) { require.NoError(t, unix.Mkfifo(path, 0o600)) },
	"socket":    func(t *testing.T, path, _ string) { require.NoError(t, unix.Mknod(path, unix.S_IFSOCK|0o600, 0)) },
	"directory": func(t *testing.T, path, _ string) { require.NoError(t, os.Mkdir(path, 0o700)) },
}

// hardLink is the replacement by a hard link to the same file of another store, which holds what an
// operation expects.
const hardLink = "hard link"

// preparedNames are names of files that the store reads or creates.
var preparedNames = []string{
	"journal/COLLECTING", "journal/COLLECTING.tmp", "BACKUP.json", "search.db", "search.db-wal", "search.db-shm", "verify-1",
	"index.bolt.compact", "index.bolt.sums", "index.bolt.before-repair",
	"journal/0000000001.seg.100.cut", "journal/0000000002.seg", "journal/0000000003.seg", "journal/0000000099.seg",
	"journal/0000000001-0000000001.pack", "journal/0000000001-0000000001.pack.tmp", "journal/0000000001-0000000002.1.pack.tmp",
}

// operationsEach is the number of operations on each replacement of each file. They rotate, so
// that each operation meets every file and every kind of replacement. A campaign runs all of
// them.
const operationsEach = 2

func TestPreparedStore(t *testing.T) {
	states := map[string]func(t *testing.T) string{
		"fresh": func(t *testing.T) string { return made(t, Options{}, 20) },
		"segments": func(t *testing.T) string {
			return made(t, Options{SegmentSize: 4 << 10, NoPacking: true}, 60)
		},
		"packed": func(t *testing.T) string { return packedStore(t, backend.PackOptions{All: true}) },
		"dense":  func(t *testing.T) string { return packedStore(t, backend.PackOptions{All: true, Dense: true}) },
		"backup": func(t *testing.T) string {
			e := reopen(t, made(t, Options{}, 20), Options{})
			dir := filepath.Join(t.TempDir(), "backup")
			_, err := e.Backup(background, dir, backend.BackupOptions{})
			require.NoError(t, err)
			return dir
		},
	}
	for state, make := range states {
		t.Run(state, func(t *testing.T) {
			store := make(t)
			names := []string{journalDir}
			if state == "fresh" {
				names = append(names, preparedNames...)
			}
			require.NoError(t, filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
				if name, _ := filepath.Rel(store, path); !d.IsDir() {
					names = append(names, filepath.ToSlash(name))
				}
				return err
			}))
			turn := 0
			for _, name := range names {
				kinds := slices.Sorted(maps.Keys(replacements))
				if _, err := os.Lstat(filepath.Join(store, name)); err == nil && name != journalDir {
					kinds = append(kinds, hardLink)
				}
				for _, kind := range kinds {
					turn += operationsEach
					first := turn
					t.Run(name+" "+kind, func(t *testing.T) {
						t.Parallel()
						testPrepared(t, store, name, kind, first)
					})
				}
			}
		})
	}
}

// An operation is done to a store. It may write to other, which does not exist.
type operation struct {
	name string
	run  func(dir, other string) error
}

// operationsOn returns the operations on prepared stores.
func operationsOn(room string) []operation {
	withOpen := func(o Options, use func(*Engine) error) func(string, string) error {
		return func(dir, _ string) error {
			e, err := Open(background, dir, o)
			if err != nil {
				return err
			}
			return errors.Join(use(e), e.Close())
		}
	}
	verify := func(e *Engine) error {
		for _, err := range e.Verify(background, backend.VerifyOptions{Deep: true}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	collect := func(e *Engine) error {
		_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{
			&structure.Deletion{Subject: structure.KindContext, Context: structure.DeriveID[structure.ContextID]("20")},
		}}, backend.Options{})
		if err != nil {
			return err
		}
		_, err = e.Collect(background, backend.CollectOptions{KeepUnused: -1, KeepReflog: -1})
		return err
	}
	return []operation{
		{"read", withOpen(Options{ReadOnly: true}, verify)},
		{"append", withOpen(Options{MustExist: true, SegmentSize: 4 << 10}, func(e *Engine) error {
			for range 30 { // into the next segment
				head, err := e.Head(background)
				if err == nil {
					_, err = e.Apply(background, message(head.Number+1), backend.Options{Durability: backend.Normal})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})},
		{"pack", withOpen(Options{}, func(e *Engine) error {
			_, err := e.Pack(background, backend.PackOptions{All: true})
			return err
		})},
		{"collect", withOpen(Options{}, collect)},
		{"backup", withOpen(Options{}, func(e *Engine) error {
			_, err := e.Backup(background, filepath.Join(room, "to"), backend.BackupOptions{})
			return err
		})},
		{"restore", func(dir, other string) error {
			_, err := Restore(background, dir, other, RestoreOptions{})
			return err
		}},
		{"salvage", func(dir, other string) error {
			_, err := Salvage(background, dir, other, SalvageOptions{})
			return err
		}},
	}
}

// testPrepared requires that no operation on a store accesses files outside it.
func testPrepared(t *testing.T, store, name, kind string, first int) {
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.CopyFS(outside, os.DirFS(store)))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("precious"), 0o644))
	before := treeOf(t, outside)
	for n := range min(campaign.Rounds(operationsEach), len(operationsOn(""))) {
		room := t.TempDir()
		all := operationsOn(room)
		operation := all[(first+n)%len(all)]
		dir := filepath.Join(room, "store")
		require.NoError(t, os.CopyFS(dir, os.DirFS(store)))
		path := filepath.Join(dir, filepath.FromSlash(name))
		_, err := os.Lstat(path)
		there := err == nil
		require.NoError(t, os.RemoveAll(path))
		if kind == hardLink {
			require.NoError(t, os.Link(filepath.Join(outside, filepath.FromSlash(name)), path))
		} else {
			replacements[kind](t, path, outside)
		}

		done := make(chan error, 1)
		go func() { done <- operation.run(dir, filepath.Join(room, "other")) }()
		select {
		case err = <-done:
		case <-time.After(2 * time.Minute):
			require.FailNow(t, "hangs", operation.name)
		}
		require.Equal(t, before, treeOf(t, outside), operation.name)
		if kind == "directory" && strings.HasPrefix(name, "journal") {
			continue // files are missing, which other tests cover
		}
		if err == nil {
			require.False(t, kind != hardLink && there && needed(name, operation.name), operation.name)
			continue
		}
		require.ErrorIs(t, err, vfs.ErrNotRegular, operation.name)
		require.ErrorContains(t, err, path, operation.name)
	}
}

// needed reports whether an operation needs a file of the store.
func needed(name, operation string) bool {
	switch name {
	case "index.bolt":
		return operation != "restore" && operation != "salvage"
	case "index.bolt.sums":
		return false
	case manifestFile:
		return operation == "restore"
	}
	return true
}

// treeOf returns the files of a directory.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			tree[path] = "directory"
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		tree[path] = info.Mode().String() + info.ModTime().String() + string(b)
		return err
	}))
	return tree
}
