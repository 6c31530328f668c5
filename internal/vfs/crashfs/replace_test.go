package crashfs_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

// replacement replaces the content of a file through a temporary file, possibly
// without necessary steps.
type replacement struct {
	skipSync, skipRename, skipSyncDir bool
}

func (r replacement) do(fsys vfs.FS, content []byte) error {
	if r.skipRename {
		f, err := fsys.OpenRW("f")
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(content, 0); err != nil {
			return err
		}
		return f.Sync()
	}
	f, err := fsys.Create("f.new")
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if !r.skipSync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := fsys.Rename("f.new", "f"); err != nil {
		return err
	}
	if r.skipSyncDir {
		return nil
	}
	return fsys.SyncDir(".")
}

// crashEverywhere crashes the replacement in every operation and after the last
// one, and returns the number of violations: a content other than the old or
// the new one, or the old one after success.
func (r replacement) crashEverywhere(t *testing.T) (violations int) {
	t.Helper()
	oldContent, newContent := sectors("aa"), sectors("bb")

	disk, _ := newDisk(t, oldContent)
	before := disk.Ops()
	require.NoError(t, r.do(disk, []byte(newContent)))
	ops := disk.Ops() - before

	rng := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= ops+1; n++ {
		disk, _ := newDisk(t, oldContent)
		disk.CrashAfter(n, 700)
		err := r.do(disk, []byte(newContent))
		if n <= ops {
			require.ErrorIs(t, err, crashfs.ErrCrashed)
		} else {
			require.NoError(t, err)
		}
		crashes := []crashfs.Crash{crashfs.KeepNone(), crashfs.KeepAll()}
		for i := range disk.UnsyncedOps() {
			crashes = append(crashes, crashfs.KeepPrefix(i, 600))
		}
		for range 50 {
			crashes = append(crashes, crashfs.Random(rng))
		}
		for _, c := range crashes {
			content, readErr := disk.Crash(c).ReadFile("f")
			if readErr != nil || string(content) != newContent && (err == nil || string(content) != oldContent) {
				violations++
			}
		}
	}
	return violations
}

// TestCrashEverywhere checks that the complete replacement survives every
// crash, and that each missing step is detected.
func TestCrashEverywhere(t *testing.T) {
	require.Zero(t, replacement{}.crashEverywhere(t))
	for _, careless := range []replacement{{skipSync: true}, {skipRename: true}, {skipSyncDir: true}} {
		t.Run(fmt.Sprintf("%+v", careless), func(t *testing.T) {
			require.Positive(t, careless.crashEverywhere(t))
		})
	}
}
