package export_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/backend"
)

// incomplete is an engine whose snapshots, from some on, have no contexts or do not exist.
type incomplete struct {
	backend.Engine
	snapshots int // that are whole
	removed   bool
}

func (e *incomplete) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := e.Engine.Snapshot(ctx)
	if e.snapshots--; e.snapshots >= 0 || err != nil {
		return s, err
	}
	if e.removed {
		return nil, backend.ErrNotFound
	}
	return withoutContexts{s}, nil
}

type withoutContexts struct{ backend.Snapshot }

func (withoutContexts) Context(context.Context, lineage.ContextID) (backend.Context, error) {
	return backend.Context{}, backend.ErrNotFound
}

// Only a thread that is deleted is left out. A thread that cannot be read, or a store that is removed, is an error.
func TestWhatIsMissingIsAnError(t *testing.T) {
	for _, removed := range []bool{false, true} {
		memory, err := embedded.Open(bg, "", embedded.Options{InMemory: true})
		require.NoError(t, err)
		e := &incomplete{Engine: memory, snapshots: 1 << 30, removed: removed}
		s := lineage.New(e)
		defer s.Close()
		for range 3 {
			thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
			require.NoError(t, err)
			main, err := thread.Active(bg)
			require.NoError(t, err)
			_, err = main.Extend(bg, lineage.User("question"))
			require.NoError(t, err)
		}
		e.snapshots = 1
		require.ErrorIs(t, export.Write(bg, s, &bytes.Buffer{}, export.OpenAI, export.Options{}), lineage.ErrNotFound)
		e.snapshots = 1
		_, err = export.WriteSite(bg, s, filepath.Join(t.TempDir(), "site"), export.Options{})
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
}
