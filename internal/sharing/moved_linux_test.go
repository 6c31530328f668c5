package sharing

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// TestMovedWhileOpen moves the directory of a store with an owner and a guest, and creates another store at its place.
// Neither changes the other store, and what was acknowledged is in the moved one.
func TestMovedWhileOpen(t *testing.T) {
	parent := t.TempDir()
	dir, moved := filepath.Join(parent, "store"), filepath.Join(parent, "moved")
	o := Options{Options: embedded.Options{SegmentSize: 1, OverlayBytes: 1, Durability: backend.Full}}
	owner, guest := open(t, dir, o), open(t, dir, o)
	require.True(t, owns(owner))
	apply(t, guest, "first")
	require.NoError(t, os.Rename(dir, moved))
	other := open(t, dir, o)
	require.True(t, owns(other))
	apply(t, other, "other")
	for range 3 {
		for _, e := range []*Engine{owner, guest} {
			_, err := e.Apply(background, newThread("lost"), backend.Options{})
			require.Error(t, err)
		}
	}
	_, err := owner.Head(background)
	require.ErrorIs(t, err, backend.ErrDiverged)
	require.Equal(t, map[string]int{"other": 1}, threads(t, other))
	for _, e := range []*Engine{owner, guest, other} {
		require.NoError(t, e.Close())
	}
	requireSound(t, open(t, dir, o))
	again := open(t, moved, o)
	require.Subset(t, map[string]int{"first": 1, "lost": 1}, threads(t, again))
	require.Contains(t, threads(t, again), "first")
	requireSound(t, again)
}

// TestRemovedWhileOpen removes a directory with an owner and a guest. Neither creates it again.
func TestRemovedWhileOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := Options{Options: embedded.Options{SegmentSize: 1, OverlayBytes: 1, Durability: backend.Full}}
	owner, guest := open(t, dir, o), open(t, dir, o)
	apply(t, guest, "first")
	require.NoError(t, os.RemoveAll(dir))
	for range 3 {
		for _, e := range []*Engine{owner, guest} {
			_, err := e.Apply(background, newThread("lost"), backend.Options{})
			require.Error(t, err)
		}
	}
	_, err := owner.Head(background)
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.NoError(t, owner.Close())
	require.NoError(t, guest.Close())
	require.NoDirExists(t, dir)
}

// TestRemovedLock removes the lock file of an open store. The owner opens the store again, and only one process has
// its files open.
func TestRemovedLock(t *testing.T) {
	dir := t.TempDir()
	o := Options{Options: embedded.Options{SegmentSize: 1, OverlayBytes: 1, Durability: backend.Full}}
	owner, guest := open(t, dir, o), open(t, dir, o)
	apply(t, owner, "first")
	require.NoError(t, os.Remove(filepath.Join(dir, embedded.LockFile)))
	_, err := owner.Apply(background, newThread("unknown"), backend.Options{})
	require.ErrorIs(t, err, backend.ErrUncertain)
	require.Eventually(t, func() bool { // the failed handle may serve this one until it is closed
		_, err := owner.Apply(background, newThread("second"), backend.Options{})
		require.NotErrorIs(t, err, backend.ErrUncertain)
		return err == nil
	}, time.Minute, time.Millisecond)
	apply(t, guest, "third")
	require.NotEqual(t, owns(owner), owns(guest))
	require.Equal(t, map[string]int{"first": 1, "unknown": 1, "second": 1, "third": 1}, threads(t, owner))
	requireSound(t, guest)
}

// requireSound verifies a store.
func requireSound(t *testing.T, e *Engine) {
	t.Helper()
	for finding, err := range e.Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.Fail(t, finding.String())
	}
}
