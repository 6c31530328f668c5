package sdktest

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// Every API takes every conversation of the archives that imports are tested with.
func TestArchivesFit(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	root := filepath.Join("..", "..", "lineage", "archive", "testdata")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Name() == "golden" {
			return filepath.SkipDir
		}
		if d.IsDir() && filepath.Dir(path) == root {
			_, err := archive.Import(ctx, store, archive.Path(path), archive.Options{})
			require.NoError(t, err, path)
		}
		return nil
	}))
	histories, called := 0, 0
	for thread, err := range store.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		for _, b := range branches {
			c, err := store.Context(ctx, b.Context)
			require.NoError(t, err)
			var history []message.Message
			for e, err := range c.Entries(ctx, lineage.Window{}) {
				require.NoError(t, err)
				history = append(history, message.Decode(e.Body, e.Type, e.Role)...)
			}
			for _, to := range apis {
				out, err := message.Encode(to, history)
				require.NoError(t, err)
				check(t, to, out.Items, b.Name)
				called += len(out.Items)
			}
			histories++
		}
	}
	require.Greater(t, histories, 50)
	require.Greater(t, called, 1000)
}
