package sources

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// A bundle is written again when the state that it was made of expires, and the file holds only the last attempt.
func TestBundleOfExpiredState(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	_, err = main.Extend(t.Context(), lineage.User("one"))
	require.NoError(t, err)
	engine := &backendtest.Expiring{Engine: write.Of(store).Engine()}
	s := &app.OpenStore{App: app.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" }), Store: lineage.New(engine)}
	create := func(name string, expire int64) ([]byte, error) {
		engine.Left.Store(expire)
		file := filepath.Join(t.TempDir(), name)
		err := runBundleCreate(t.Context(), s, &bundleCreateOptions{file: file, all: true})
		if err != nil {
			require.NoFileExists(t, file)
			return nil, err
		}
		return os.ReadFile(file)
	}
	want, err := create("one", 0)
	require.NoError(t, err)
	got, err := create("two", 3)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = create("three", 1<<30)
	require.ErrorIs(t, err, lineage.ErrExpired)
}
