package conversations

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/structure"
)

// A thread of which no branch is active, as some bundles have, is listed, shown and deleted.
func TestThreadWithoutActive(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{Title: "Porto"})
	require.NoError(t, err)
	engine := write.Of(store).Engine()
	was, err := engine.Thread(t.Context(), thread.ID())
	require.NoError(t, err)
	now := *was
	now.Active = lineage.ContextID{}
	_, err = engine.Apply(t.Context(), &structure.Commit{Records: []structure.Record{&now}}, backend.Options{})
	require.NoError(t, err)

	out := &bytes.Buffer{}
	s := threads.InStore{OpenStore: &app.OpenStore{App: app.New(nil, out, &bytes.Buffer{}, func(string) string { return "" }), Store: store, Refs: refs.New(store, nil)}}
	require.NoError(t, runThreadList(t.Context(), s.App, s, &threads.ThreadListOptions{}))
	r, err := s.FindThread(t.Context(), thread.ID().String())
	require.NoError(t, err)
	require.Equal(t, 1, r.Branches)
	require.Empty(t, r.Branch)
	require.Empty(t, r.Context)
	d, err := s.ThreadToDelete(t.Context(), thread.ID().String())
	require.NoError(t, err)
	require.NoError(t, d.Do(t.Context()))
	_, err = thread.Info(t.Context())
	require.ErrorIs(t, err, lineage.ErrNotFound)
}
