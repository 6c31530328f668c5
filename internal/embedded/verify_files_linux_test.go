package embedded

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// openDeleted returns the deleted files that the process has open.
func openDeleted(t *testing.T) (names []string) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, f := range open {
		if name, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); err == nil && strings.HasSuffix(name, " (deleted)") {
			names = append(names, name)
		}
	}
	return names
}

// A store is packed and collected several times while it is verified. Nothing is found, and the replaced files that the
// verification read are closed and removed when it ends: also if it is cancelled, or the caller takes nothing more.
//
//test:norace
func TestVerifyReleasesReplacedFiles(t *testing.T) {
	before := openDeleted(t)
	for _, stops := range []bool{false, true} {
		for at := 1; at < 40; at += 1 + at/2 {
			s := newCollectStore(t, t.TempDir(), rand.New(rand.NewPCG(uint64(at), 6)))
			commits := func(n int) {
				for range n {
					s.commit()
				}
			}
			pack := func() {
				_, err := s.engine.Pack(background, backend.PackOptions{All: true})
				require.NoError(t, err)
			}
			commits(10)
			if at%2 == 0 {
				pack()
			}
			commits(5)
			ctx, cancel := context.WithCancel(background)
			calls := 0
			o := backend.VerifyOptions{Deep: true, Progress: func(int64, int64) {
				if calls++; calls < at || calls >= at+3 {
					return
				}
				pack()
				commits(3)
				s.collectAs(s.collectOptions(0))
				if stops {
					cancel()
				}
			}}
			for found, err := range s.engine.Verify(ctx, o) {
				if stops {
					break
				}
				require.NoError(t, err)
				t.Errorf("%d: %v", at, found)
			}
			cancel()
			// A fold of the index that runs in the background may have its old file open a little longer.
			require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Subset(c, before, openDeleted(t), at) }, 2*time.Minute, time.Millisecond)
			files, err := filepath.Glob(filepath.Join(s.dir, journalDir, "*"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			s.close()
			s.open()
			again, err := filepath.Glob(filepath.Join(s.dir, journalDir, "*"))
			require.NoError(t, err)
			require.ElementsMatch(t, files, again, "%d: opening removes nothing", at)
			s.verify()
			s.close()
		}
	}
}
