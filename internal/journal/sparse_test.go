package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A file can say that it is of any size without taking any room. It is neither read to
// its end nor kept in memory.
func TestFilesOfAnySize(t *testing.T) {
	for _, size := range []int64{1400 << 20, 1 << 40} {
		dir := filepath.Join(t.TempDir(), "journal")
		j, err := Open(dir, Options{FS: vfs.OS()})
		require.NoError(t, err)
		appendAll(t, j, payloads(100, 100)...)
		require.NoError(t, j.Close())
		name := filepath.Join(dir, segmentName(1))
		for _, last := range []byte{0, 1} {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			require.NoError(t, err)
			require.NoError(t, f.Truncate(size))
			_, err = f.WriteAt([]byte{last}, size-1)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			for _, readOnly := range []bool{true, false} {
				j, err := Open(dir, Options{FS: vfs.OS(), ReadOnly: readOnly})
				if readOnly && size <= mostSegment && last != 0 {
					require.NoError(t, err)
					err = j.Damage()
					require.NoError(t, j.Close())
				}
				if size > mostSegment || last != 0 {
					require.ErrorIs(t, err, backend.ErrCorrupt)
					require.ErrorContains(t, err, name)
					continue
				}
				require.NoError(t, err)
				require.EqualValues(t, 2, j.Last())
				require.NoError(t, j.Close())
				if !readOnly {
					require.NoError(t, os.Truncate(name, size))
				}
			}
		}
	}
}
