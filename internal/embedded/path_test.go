package embedded

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestDigestOfAForkIsKept: the first message of a fork needs the digest at its
// base. The next fork at the same place does not read it again.
func TestDigestOfAForkIsKept(t *testing.T) {
	e, err := Open(context.Background(), filepath.Join(t.TempDir(), "store"), Options{})
	require.NoError(t, err)
	defer e.Close()
	w := newWriter(t, e, backend.Normal)
	for range 10 {
		require.NoError(t, w.extend())
	}
	at := structure.SpanRef{Run: w.at.Run, Seq: 7}
	_, known := e.cache.Digest(at)
	require.False(t, known)
	v := e.now()
	want, err := v.ComputeDigest(at)
	v.Close()
	require.NoError(t, err)
	_, err = e.Apply(context.Background(), &structure.Commit{Records: []structure.Record{
		&structure.Run{ID: structure.NewID[structure.RunID](), Parent: at},
	}}, backend.Options{})
	require.NoError(t, err)
	got, known := e.cache.Digest(at)
	require.True(t, known)
	require.Equal(t, want, got)
}
