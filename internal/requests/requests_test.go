package requests

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

func TestSessions(t *testing.T) {
	var s Sessions
	heads := 0
	head := func(context.Context) (backend.Cursor, error) {
		heads++
		return backend.Cursor{Number: uint64(heads)}, nil
	}
	first, err := s.Take(t.Context(), head)
	require.NoError(t, err)
	second, err := s.Take(t.Context(), head)
	require.NoError(t, err)
	require.NotEqual(t, first.Session, second.Session)
	require.Equal(t, uint64(2), second.Since.Number)

	second.Sequence = 7
	s.Free(second)
	again, err := s.Take(t.Context(), head)
	require.NoError(t, err)
	require.Same(t, second, again, "its numbers continue")
	require.Equal(t, 2, heads)

	_, err = s.Take(t.Context(), func(context.Context) (backend.Cursor, error) { return backend.Cursor{}, backend.ErrClosed })
	require.ErrorIs(t, err, backend.ErrClosed)
}
