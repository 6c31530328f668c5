package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

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
	s := &session{app: newApp(nil, out, &bytes.Buffer{}, func(string) string { return "" }), store: store}
	s.json = true
	require.NoError(t, s.listContexts(t.Context(), lineage.ThreadID{}, &contextsOptions{}))
	require.NoError(t, s.flush())
	require.Contains(t, out.String(), alone.ID().String())
	require.NotContains(t, out.String(), main.ID().String())
	out.Reset()
	s.json = false
	require.NoError(t, s.listContexts(t.Context(), thread.ID(), &contextsOptions{}))
	require.NoError(t, s.flush())
	require.Regexp(t, `\* +[0-9a-f]{8} +branch +main +0 `, out.String())
}
