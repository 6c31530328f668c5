package lineagetest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

func TestStoresAreEmptyAndApart(t *testing.T) {
	a, b := lineagetest.New(t, lineage.Options{}), lineagetest.New(t, lineage.Options{})
	_, err := a.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: "trip"})
	require.NoError(t, err)
	_, err = b.FindThread(t.Context(), "trip")
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

func TestTheStoreIsClosedAfterTheTest(t *testing.T) {
	var store *lineage.Store
	t.Run("test", func(t *testing.T) { store = lineagetest.New(t, lineage.Options{}) })
	_, err := store.CreateThread(context.Background(), lineage.ThreadOptions{})
	require.ErrorIs(t, err, lineage.ErrClosed)
}
