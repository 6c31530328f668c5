package journal

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Check finds a missing file between two others: between segments, between packs, and
// between a pack and a segment.
func TestCheckFindsMissingCommits(t *testing.T) {
	j := open(t, options(crashfs.New()))
	for i := range 60 {
		_, err := j.Append(payload(i, 700), nil, true)
		require.NoError(t, err)
	}
	files := j.Segments()
	require.Greater(t, len(files), 6)
	for _, pair := range [][2]int{{0, 1}, {2, 3}} {
		_, err := j.Rewrite(context.Background(), files[pair[0]].First, files[pair[1]].Last, RewriteOptions{})
		require.NoError(t, err)
	}
	v := j.FileSet()
	defer v.Release()
	require.NoError(t, v.Check(context.Background(), j.End()))
	for i := range len(v.segments) - 2 {
		less := &FileSet{j: j, segments: slices.Delete(slices.Clone(v.segments), i+1, i+2)}
		err := less.Check(context.Background(), j.End())
		require.ErrorIs(t, err, backend.ErrCorrupt, "without %s", v.segments[i+1].name)
		require.ErrorContains(t, err, "begins with commit")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, v.Check(ctx, j.End()), context.Canceled)
}
