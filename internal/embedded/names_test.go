package embedded

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A name is part of an index key, whose length is limited.
func TestLongestName(t *testing.T) {
	e, err := Open(background, filepath.Join(t.TempDir(), "store"), Options{})
	require.NoError(t, err)
	defer e.Close()
	thread := &structure.Thread{ID: structure.NewID[structure.ThreadID]()}
	c := &structure.Context{ID: structure.NewID[structure.ContextID](), Thread: thread.ID}
	branch := &structure.Branch{Thread: thread.ID, Context: c.ID, Name: strings.Repeat("n", judge.MaxName)}
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{thread, c, branch}}, backend.Options{})
	require.NoError(t, err)
	require.NoError(t, e.index.Checkpoint())
	got, err := e.Branch(background, thread.ID, branch.Name)
	require.NoError(t, err)
	require.Equal(t, c.ID, got.Context)

	branch.Name += "n"
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{branch}}, backend.Options{})
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "4096")
	require.Less(t, len(err.Error()), 300)
}
