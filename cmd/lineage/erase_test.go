package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/summarize"
)

// The summaries that erase names are also those of contexts outside threads.
func TestEraseNamesSummariesOutsideThreads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	alone, err := store.NewContext(t.Context(), lineage.ContextOptions{})
	require.NoError(t, err)
	spans, err := alone.Extend(t.Context(), lineage.User("The number is 4711."))
	require.NoError(t, err)
	summary, err := alone.Summarize(t.Context(), summarize.Extractive{}, lineage.SummarizeOptions{})
	require.NoError(t, err)
	after, err := alone.Extend(t.Context(), lineage.User("It is not summarized."))
	require.NoError(t, err)
	require.NoError(t, store.Close())

	got := runLine(t.Context(), "erase", spans[0].String(), "--dry-run", "--json", "--store", dir)
	require.Equal(t, 0, got.code, got.err)
	var r records.Erased
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	require.Equal(t, []string{summary.Content.String()}, r.Summaries)

	got = runLine(t.Context(), "erase", after[0].String(), "--dry-run", "--json", "--store", dir)
	require.Equal(t, 0, got.code, got.err)
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	require.Empty(t, r.Summaries)
}
