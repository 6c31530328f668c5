package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// TestProjectingAForkAmongMany projects one more fork of a context that has values which forks
// inherit. It does not look at the others.
func TestProjectingAForkAmongMany(t *testing.T) {
	cost := func(forks int) int64 {
		store, db := lineagetest.New(t, lineage.Options{}), sqlChats(t)
		thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		require.NoError(t, store.Values(lineage.Owner{Context: main.ID()}).Set(t.Context(), "k", []byte("1")))
		_, err = main.Extend(t.Context(), lineage.User("hello"))
		require.NoError(t, err)
		for range forks {
			_, err = main.Fork(t.Context(), lineage.ForkOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, store.Values(lineage.Owner{Context: main.ID()}).Set(t.Context(), "k", []byte("2")))
		counting := backendtest.NewCounting(write.Of(store).Engine())
		projector := &project.Projector{Store: lineage.New(counting), DB: db}
		_, err = projector.Run(t.Context())
		require.NoError(t, err)
		_, err = main.Fork(t.Context(), lineage.ForkOptions{})
		require.NoError(t, err)
		return counting.Cost(func() {
			_, err := projector.Run(t.Context())
			require.NoError(t, err)
		})
	}
	few := cost(2)
	require.NotZero(t, few)
	require.LessOrEqual(t, cost(200), few+few/2)
}
