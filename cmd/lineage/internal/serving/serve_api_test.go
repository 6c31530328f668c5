package serving

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/api"
)

// A message that is in no thread of the caller is no hit.
func TestSearchOfAnother(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	for _, user := range []string{"ada", "bob"} {
		thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		_, err = main.Extend(t.Context(), lineage.User("the secret of "+user))
		require.NoError(t, err)
	}
	p := &sharedIndexes{store: store, dir: t.TempDir()}
	q := api.SearchQuery{Text: "secret", Limit: 10}
	hits, err := p.searchFor(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, hits, 2)
	q.Scope = access.Scope{Users: []string{"ada"}}
	hits, err = p.searchFor(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.Equal(t, "the secret of ada", hits[0].Text)
	require.NoError(t, p.close())
}

// A history without messages cannot be resumed, which is no failure of the server.
func TestResumeNothing(t *testing.T) {
	home := t.TempDir()
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	store := lineagetest.New(t, lineage.Options{})
	to := &transfers{&app.OpenStore{App: app.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, getenv), Store: store}}
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	_, err = to.resume(t.Context(), api.ResumeQuery{Thread: thread.ID()})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.ErrorContains(t, err, "no message to resume from")
}
