package embedded

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// However large new packs are, a store has few that are not full, none is too large, and
// little is written again and again.
func TestMergesKeepFewPacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []packFile
		added, written := 0.0, 0.0
		size := rapid.Float64Range(-12, -1) // binary logarithm
		spread := rapid.Float64Range(0, 4).Draw(t, "spread")
		middle := size.Draw(t, "size")
		for i := range rapid.IntRange(1, 400).Draw(t, "packs") {
			share := math.Exp2(min(middle+rapid.Float64Range(-spread, spread).Draw(t, "this"), -0.1))
			added += share
			n := uint32(i + 1)
			files = append(files, packFile{SegmentInfo: journal.SegmentInfo{First: n, Last: n, Packed: true}, share: share})
			for {
				job, ok := planMerge(files)
				if !ok {
					break
				}
				require.LessOrEqual(t, job.share, 1.0)
				require.Greater(t, job.files, 1)
				if job.share > tiers[0] {
					written += job.share
				}
				var left []packFile
				for _, f := range files {
					if f.Last < job.first || f.First > job.last {
						left = append(left, f)
					} else if f.First == job.first {
						f.Last, f.share = job.last, job.share
						left = append(left, f)
					}
				}
				files = left
			}
		}
		open := 0
		for _, f := range files {
			if f.share < tiers[len(tiers)-1] {
				open++
			}
		}
		full := len(files) - open
		require.LessOrEqual(t, full, 1+int(added/tiers[len(tiers)-1]))
		require.LessOrEqual(t, open, (manyPacks-1)*(full+1), "%d full", full)
		require.LessOrEqual(t, written, float64(len(tiers))*added)
	})
}

// TestPlanAll plans for files of the given sizes, oldest first: s is a segment, p a pack, d a dense
// one, x a damaged one.
func TestPlanAll(t *testing.T) {
	for _, c := range []struct {
		files string
		share []float64
		dense bool
		want  string
	}{
		{"p", []float64{.1}, false, ""},
		{"p", []float64{.1}, true, "1-1"},
		{"d", []float64{.1}, true, ""},
		{"s", []float64{.1}, false, "1-1"},
		{"ps", []float64{.001, .00001}, false, "1-2"},
		{"ps", []float64{.5, .01}, false, "2-2"},
		{"ps", []float64{.5, .2}, false, "1-2"},
		{"ss", []float64{.5, .01}, false, "1-2"},
		{"ss", []float64{.8, .3}, false, "1-1 2-2"},
		{"pp", []float64{.8, .01}, true, "1-2"},
		{"dp", []float64{.01, .01}, false, ""},
		{"dp", []float64{.01, .01}, true, "1-2"},
		{"dp", []float64{.8, .01}, true, "2-2"},
		{"dd", []float64{.01, .01}, false, "1-2"},
		{"pxp", []float64{.01, .01, .01}, false, "2-2"},
		{"pxpp", []float64{.01, .01, .01, .01}, true, "1-1 2-2 3-4"},
		{"ppp", []float64{.6, .02, .02}, false, "2-3"},
	} {
		var files []packFile
		for i, kind := range c.files {
			n := uint32(i + 1)
			files = append(files, packFile{
				SegmentInfo: journal.SegmentInfo{First: n, Last: n, Packed: kind != 's', Dense: kind == 'd'}, share: c.share[i], damaged: kind == 'x',
			})
		}
		is := ""
		for _, p := range planAll(files, c.dense) {
			is += fmt.Sprintf(" %d-%d", p.first, p.last)
		}
		if is != "" {
			is = is[1:]
		}
		require.Equal(t, c.want, is, "%+v", c)
	}
}

// packsOf returns the number of packs, and the largest number of segments in one.
func packsOf(e *Engine) (packs, widest int) {
	for _, f := range e.journal.Segments() {
		if f.Packed {
			packs++
			widest = max(widest, int(f.Last-f.First)+1)
		}
	}
	return packs, widest
}

// manySmallPacks opens a store and writes so many packs, each by itself.
func manySmallPacks(t *testing.T, dir string, o Options, packs int) *Engine {
	t.Helper()
	o.SegmentSize, o.Durability, o.NoPacking = 4<<10, backend.Normal, true
	e, err := Open(background, dir, o)
	require.NoError(t, err)
	for i := range packs {
		for n := range 20 {
			_, err := e.Apply(background, message(uint64(20*i+n+1)), backend.Options{})
			require.NoError(t, err)
		}
		require.NoError(t, e.journal.Seal())
		_, err := e.Pack(background, backend.PackOptions{})
		require.NoError(t, err)
	}
	return e
}

// Packs merge without being asked for. A snapshot from before, with an open iterator, goes on; so do
// searches for content and spans in the merged packs.
//
//test:norace
func TestPacksMerge(t *testing.T) {
	dir := t.TempDir()
	e := manySmallPacks(t, dir, Options{fullPack: 1 << 30}, manyPacks-1)
	packs, _ := packsOf(e)
	require.Equal(t, manyPacks-1, packs)
	want := feedOf(t, e)
	s, err := e.Snapshot(background)
	require.NoError(t, err)
	run, last := structure.DeriveID[structure.RunID]("run"), uint64(len(want))
	n := uint64(0)
	for x, err := range s.Path(background, structure.SpanRef{Run: run, Seq: last}, structure.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		if n++; n == 30 {
			e.opt.fullPack = 16 << 10
			_, err := e.Pack(background, backend.PackOptions{})
			require.NoError(t, err)
			packs, widest := packsOf(e)
			require.Less(t, packs, manyPacks-1)
			require.Greater(t, widest, 1)
		}
		require.Equal(t, n, x.Position)
	}
	require.Equal(t, last, n)
	require.NoError(t, s.Close())
	require.Equal(t, want, feedOf(t, e))
	requireMessages(t, e, uint64(len(want)))
	requireSound(t, e)
	require.NoError(t, e.Close())
	e = reopen(t, dir, Options{})
	require.Equal(t, want, feedOf(t, e))
	requireSound(t, e)
}

// The power fails, or an operation, at any step of a merge: nothing is lost.
//
//test:norace
func TestCrashWhilePacksMerge(t *testing.T) {
	disk, dir := crashfs.New(), t.TempDir()
	e := manySmallPacks(t, dir, Options{FS: disk, fullPack: 1 << 30}, 4)
	want := feedOf(t, e)
	require.NoError(t, e.Close())
	before, err := os.ReadFile(filepath.Join(dir, indexFile))
	require.NoError(t, err)
	merged := 0
	try := func(n int, fail bool) (ops int) {
		disk := disk.Crash(crashfs.KeepAll())
		require.NoError(t, os.WriteFile(filepath.Join(dir, indexFile), before, 0o600))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, indexFile+".sums")))
		o := Options{FS: disk, Durability: backend.Normal, NoPacking: true, fullPack: 8 << 10}
		e, err := Open(background, dir, o)
		require.NoError(t, err)
		begin := disk.Ops()
		switch {
		case n > 0 && fail:
			disk.FailOp(n, errDisk)
		case n > 0:
			disk.CrashAfter(n, 100)
		}
		_, err = e.Pack(background, backend.PackOptions{})
		ops = disk.Ops() - begin
		if n == 0 || fail && !errors.Is(err, errDisk) {
			require.NoError(t, err)
		}
		if fail || n == 0 {
			require.Equal(t, want, feedOf(t, e), "operation %d", n)
			requireSound(t, e)
		}
		_ = e.Close()
		for _, c := range []crashfs.Crash{crashfs.KeepNone(), crashfs.KeepAll()} {
			o.FS = disk.Crash(c)
			e, err = Open(background, dir, o)
			require.NoError(t, err, "operation %d", n)
			if packs, _ := packsOf(e); packs < 4 {
				merged++
			}
			require.Equal(t, want, feedOf(t, e), "operation %d", n)
			requireSound(t, e)
			require.NoError(t, e.Close())
		}
		return ops
	}
	ops := try(0, false)
	require.Positive(t, merged)
	for _, fail := range []bool{false, true} {
		for _, n := range campaign.Sample(ops, 12) {
			try(n, fail)
		}
	}
}

// A pack that cannot be read is left as it is, and the others merge.
func TestDamagedPackIsNotMerged(t *testing.T) {
	dir := t.TempDir()
	const packs = manyPacks - 1 // four of them after the damaged one
	e := manySmallPacks(t, dir, Options{fullPack: 1 << 30}, packs)
	require.NoError(t, e.Close())
	names, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
	require.NoError(t, err)
	require.Len(t, names, packs)
	flip(t, names[2], 100)
	spoilParity(t, names[2])
	e = reopen(t, dir, Options{NoPacking: true, fullPack: 8 << 10})
	for range 2 {
		_, err = e.Pack(background, backend.PackOptions{})
		require.NoError(t, err)
		var left []string
		for _, f := range e.journal.Segments() {
			left = append(left, filepath.Base(f.Name))
		}
		require.Contains(t, left, filepath.Base(names[2]))
		require.Less(t, len(left), packs)
	}
}
