package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A sparse file can report any size. It is neither read to its end nor kept in memory.
//
//test:norace
func TestFilesOfAnySize(t *testing.T) {
	campaign.Long(t)
	for _, c := range []struct {
		size    int64
		last    byte // of the file
		damaged bool
	}{
		{size: 128 << 20}, // reserved space
		{size: maxTorn + 1<<20, last: 1, damaged: true},
		{size: 1 << 40, damaged: true},
		{size: 1 << 40, last: 1, damaged: true},
	} {
		dir := filepath.Join(t.TempDir(), "journal")
		j, err := Open(dir, Options{FS: vfs.OS()})
		require.NoError(t, err)
		appendAll(t, j, payloads(100, 100)...)
		require.NoError(t, j.Close())
		name := filepath.Join(dir, segmentName(1))
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(c.size))
		_, err = f.WriteAt([]byte{c.last}, c.size-1)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for _, readOnly := range []bool{true, false} {
			j, err := Open(dir, Options{FS: vfs.OS(), ReadOnly: readOnly})
			if err == nil {
				err = j.Damage()
				require.EqualValues(t, 2, j.Last())
				require.NoError(t, j.Close())
			}
			if c.damaged {
				require.ErrorIs(t, err, backend.ErrCorrupt)
				require.ErrorContains(t, err, name)
			} else {
				require.NoError(t, err)
			}
		}
	}
}
