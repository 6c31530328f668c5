package projecttest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// testDiverged projects a store and then a backup of it with a different continuation: shorter than
// the database, as long, and longer. Its commits differ, even with equal numbers.
func testDiverged(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	converse(t, chat.On(store), "a", say("m1", "both have it"))
	room := t.TempDir()
	_, err := store.Backup(bg, filepath.Join(room, "backup"), lineage.BackupOptions{})
	require.NoError(t, err)
	for i := range 3 {
		converse(t, chat.On(store), fmt.Sprint("b", i), say(fmt.Sprint("n", i), "the original"))
	}
	_, err = (&project.Projector{Store: store, DB: db}).Run(bg)
	require.NoError(t, err)
	want := dump(t, database, false)
	head, err := store.View().Head(bg)
	require.NoError(t, err)

	_, err = lineage.Restore(bg, filepath.Join(room, "backup"), filepath.Join(room, "restored"), lineage.RestoreOptions{})
	require.NoError(t, err)
	restored, err := lineage.Open(bg, filepath.Join(room, "restored"), lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, restored.Close()) }()
	for i := range 6 {
		_, err = (&project.Projector{Store: restored, DB: db}).Run(bg)
		require.ErrorIs(t, err, project.ErrAhead)
		require.ErrorIs(t, err, lineage.ErrDiverged)
		for _, err := range project.Compare(bg, db, restored, project.CompareOptions{}) {
			require.ErrorIs(t, err, lineage.ErrDiverged)
		}
		require.Equal(t, want, dump(t, database, false), "nothing was changed")
		converse(t, chat.On(restored), fmt.Sprint("b", i), say(fmt.Sprint("n", i), "the copy"))
	}
	now, err := restored.View().Head(bg)
	require.NoError(t, err)
	require.Greater(t, now.Number, head.Number)

	report, err := (&project.Projector{Store: store, DB: db}).Run(bg)
	require.NoError(t, err)
	require.Equal(t, head, report.From)
	require.Equal(t, head, report.To)
}
