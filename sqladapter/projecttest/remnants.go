package projecttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// testRemnants deletes contexts and a thread from which others were forked. The rows of the forks have
// the overrides that they inherit from what was deleted, and an import brings them to another store.
func (s *suite) testRemnants(t *testing.T) {
	store, place := newStore(t), s.New(t)
	db := s.open(t, place)
	defer db.Close()
	prompt, model := "You count birds.", "large"
	gone, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "gone", UserID: "ada", Overrides: lineage.Overrides{SystemPrompt: &prompt, JSON: []byte(`{"t":1}`)}})
	require.NoError(t, err)
	kept, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "kept", UserID: "bob"})
	require.NoError(t, err)
	main, err := gone.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.User("how many?"))
	require.NoError(t, err)
	between, err := main.Fork(bg, lineage.ForkOptions{Thread: kept.ID(), Overrides: lineage.Overrides{Model: &model, JSON: []byte(`{"u":2}`)}})
	require.NoError(t, err)
	leaf, err := between.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	direct, err := main.Fork(bg, lineage.ForkOptions{Thread: kept.ID()})
	require.NoError(t, err)
	s.project(t, store, db)
	row := func(c *lineage.Context) (got [3]string) {
		require.NoError(t, place.SQL.QueryRowContext(bg, `SELECT COALESCE("system_prompt_override", ''), COALESCE("model_override", ''), COALESCE("overrides", '') FROM "contexts" WHERE "id" = '`+
			c.ID().String()+`'`).Scan(&got[0], &got[1], &got[2]))
		return got
	}
	require.Equal(t, [3]string{}, row(leaf))

	require.NoError(t, gone.Delete(bg))
	s.project(t, store, db)
	require.Equal(t, [3]string{prompt, "", `{"t":1}`}, row(direct))
	require.Equal(t, [3]string{prompt, model, `{"t":1,"u":2}`}, row(between))
	require.Equal(t, [3]string{}, row(leaf))

	require.NoError(t, between.Delete(bg))
	s.project(t, store, db)
	require.Equal(t, [3]string{prompt, model, `{"t":1,"u":2}`}, row(leaf))
	require.Equal(t, s.rebuilt(t, store, false)["contexts"], dump(t, place, false)["contexts"])

	other := newStore(t)
	s.doImport(t, db, other)
	for _, c := range []*lineage.Context{leaf, direct} {
		want, err := c.Effective(bg)
		require.NoError(t, err)
		again, err := other.Context(bg, c.ID())
		require.NoError(t, err)
		got, err := again.Effective(bg)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
