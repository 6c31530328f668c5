package derivedtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// Moved tests data in a file in the directory of its store. The directory is moved away while the store is open, by its owner and a guest,
// with a handle on the data that was opened before and with none. Another store with data of its own may take the place. It must not change.
func Moved(t *testing.T, open func(store *lineage.Store, dir string) (Handle, error)) {
	for _, replaced := range []bool{true, false} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "store")
		openStore := func() *lineage.Store {
			store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
			require.NoError(t, err)
			return store
		}
		say := func(in *lineage.Store) {
			_, err := in.CreateThread(bg, lineage.ThreadOptions{})
			require.NoError(t, err)
		}
		update := func(store *lineage.Store) {
			h, err := open(store, dir)
			require.NoError(t, err)
			require.NoError(t, h.Update(bg))
			require.NoError(t, h.Close())
		}
		owner := openStore()
		guest := openStore()
		say(owner)
		var handles []Handle
		for _, store := range []*lineage.Store{owner, guest} {
			h, err := open(store, dir)
			require.NoError(t, err)
			require.NoError(t, h.Update(bg))
			handles = append(handles, h)
		}
		require.NoError(t, os.Rename(dir, filepath.Join(parent, "moved")))
		want, before := lineage.ErrNotFound, map[string]string(nil)
		if replaced {
			want = lineage.ErrDiverged
			other := openStore()
			say(other)
			say(other)
			update(other)
			require.NoError(t, other.Close())
			before = filesOf(t, dir)
		}
		for range 2 {
			for i, store := range []*lineage.Store{owner, guest} {
				_, err := open(store, dir)
				require.ErrorIs(t, err, want)
				require.ErrorIs(t, handles[i].Update(bg), want)
			}
		}
		for _, h := range handles {
			require.NoError(t, h.Close())
		}
		_ = guest.Close()
		_ = owner.Close() // it says that the directory was moved
		if !replaced {
			require.NoDirExists(t, dir)
			continue
		}
		require.Equal(t, before, filesOf(t, dir))
		other := openStore()
		update(other)
		require.NoError(t, other.Close())
	}
}

// filesOf returns the files below a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	files := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			files[path] = d.Type().String()
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	}))
	return files
}
