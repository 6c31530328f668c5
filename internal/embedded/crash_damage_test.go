package embedded

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
)

// damaged is a cleanly closed store that is damaged many times.
type damaged struct {
	*crashStore
	clean     backendtest.Facts
	index     []byte
	indexSums []byte
}

func newDamaged(t *testing.T) *damaged {
	s := newCrashStore(t, t.TempDir(), rand.New(rand.NewPCG(11, 4)), crashfs.New(), Options{SegmentSize: 1})
	for i := range 40 {
		require.NoError(t, s.commit(backend.Normal))
		if i == 20 {
			require.NoError(t, s.checkpoint(false))
		}
	}
	s.check()
	require.NoError(t, s.close())
	d := &damaged{crashStore: s, clean: expected(t, s.written, s.ever), index: s.readIndex()}
	var err error
	d.indexSums, err = os.ReadFile(s.indexPath() + ".sums")
	require.NoError(t, err)
	return d
}

// try opens the store with an index and a journal, and reads everything. Each read
// returns the right data or an error, and the damage is reported.
func (d *damaged) try(t *testing.T, index []byte, disk *crashfs.FS, what string, at int) {
	require.NoError(t, os.WriteFile(d.indexPath(), index, 0o600))
	require.NoError(t, os.WriteFile(d.indexPath()+".sums", d.indexSums, 0o600))
	o, reported := d.opt, false
	o.FS = disk
	o.Logger = logline.New(slog.LevelDebug, func(string) { reported = true })
	e, err := Open(context.Background(), d.dir, o)
	if err != nil {
		if !errors.Is(err, backend.ErrNewerFormat) { // the version was damaged
			require.ErrorIs(t, err, backend.ErrCorrupt, "byte %d of %s", at, what)
		}
		return
	}
	defer e.Close()
	require.Empty(t, ask(t, e, d.ever).Wrong(d.clean, true), "byte %d of %s", at, what)
	for range e.Verify(context.Background(), backend.VerifyOptions{Deep: true}) {
		reported = true // a finding, or an error
	}
	require.True(t, reported, "byte %d of %s was flipped, and nothing was reported", at, what)
}

// places returns some offsets in a file, or all in a campaign.
func places(choose *rand.Rand, size, some int) []int {
	all := choose.Perm(size)
	if !campaign.Runs() {
		all = all[:min(some, size)]
	}
	slices.Sort(all)
	return all
}

// flipped returns a copy of b in which one bit, or all bits, of a byte are
// inverted.
func flipped(choose *rand.Rand, b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= []byte{1 << choose.IntN(8), 0xff}[choose.IntN(2)]
	return b
}

//test:norace
func TestCrashFlippedByteOfSegment(t *testing.T) {
	d := newDamaged(t)
	names := slices.DeleteFunc(d.disk.Names(), func(name string) bool { return !strings.HasSuffix(name, ".seg") })
	require.Greater(t, len(names), 4)
	choose := rand.New(rand.NewPCG(12, 1))
	for _, name := range names[:len(names)-1] { // the sealed ones
		b, err := d.disk.ReadFile(name)
		require.NoError(t, err)
		for _, at := range places(choose, len(b), max(60/len(names), 3)) {
			disk := d.disk.Crash(crashfs.KeepAll())
			require.NoError(t, disk.WriteFile(name, flipped(choose, b, at)))
			d.try(t, d.index, disk, name, at)
		}
	}
}

//test:norace
func TestCrashFlippedByteOfIndex(t *testing.T) {
	d := newDamaged(t)
	choose := rand.New(rand.NewPCG(12, 2))
	for _, at := range places(choose, len(d.index), 30) {
		d.try(t, flipped(choose, d.index, at), d.disk.Crash(crashfs.KeepAll()), indexFile, at)
	}
	// Most of a small index is unused; the used pages come first.
	for _, at := range places(choose, min(len(d.index), 64<<10), 40) {
		d.try(t, flipped(choose, d.index, at), d.disk.Crash(crashfs.KeepAll()), indexFile, at)
	}
}
