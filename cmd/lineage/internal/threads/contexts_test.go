package threads

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

func TestListContexts(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	alone, err := store.NewContext(t.Context(), lineage.ContextOptions{})
	require.NoError(t, err)
	out := &bytes.Buffer{}
	s := &app.OpenStore{App: app.New(nil, out, &bytes.Buffer{}, func(string) string { return "" }), Store: store}
	s.JSON = true
	require.NoError(t, ListContexts(t.Context(), s, lineage.ThreadID{}, &ContextsOptions{}))
	require.NoError(t, s.Flush())
	require.Contains(t, out.String(), alone.ID().String())
	require.NotContains(t, out.String(), main.ID().String())
	out.Reset()
	s.JSON = false
	require.NoError(t, ListContexts(t.Context(), s, thread.ID(), &ContextsOptions{}))
	require.NoError(t, s.Flush())
	require.Regexp(t, `\* +[0-9a-f]{8} +branch +main +0 `, out.String())
}
