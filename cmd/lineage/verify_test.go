package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A pack that is canceled leaves a segment without commits, which is no damage.
func TestVerifyAfterACanceledPack(t *testing.T) {
	dir := newStore(t)
	store, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = store.Pack(ctx, lineage.PackOptions{All: true, Progress: func(int64, int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, store.Close())
	segments, err := filepath.Glob(filepath.Join(dir, "journal", "*.seg"))
	require.NoError(t, err)
	require.Len(t, segments, 2)

	got := runLine(t.Context(), "verify", "--store", dir)
	require.Equal(t, 0, got.code, got.err)
}
