package embedded

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
)

// cutJournal cuts the journal of a store at a random place: a file is cut there, and those after it are
// missing.
func cutJournal(t *testing.T, dir string, choose *rand.Rand) (what string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, journalDir, "*"))
	require.NoError(t, err)
	at := choose.IntN(len(files))
	info, err := os.Stat(files[at])
	require.NoError(t, err)
	size := choose.Int64N(info.Size())
	for _, name := range files[at+1:] {
		require.NoError(t, os.Remove(name))
	}
	if choose.IntN(3) == 0 && at > 0 {
		require.NoError(t, os.Remove(files[at]))
		return fmt.Sprintf("%s and what follows is missing", filepath.Base(files[at]))
	}
	if choose.IntN(3) == 0 {
		size = choose.Int64N(80)
	}
	require.NoError(t, os.Truncate(files[at], size))
	return fmt.Sprintf("%s is cut at %d of %d", filepath.Base(files[at]), size, info.Size())
}

// TestCutJournal cuts the end of the journal of a store. A reader shows the commits that are whole, and
// nothing else, and reports the damage. A salvage finds the same commits.
//
//test:norace
func TestCutJournal(t *testing.T) {
	for i := range campaign.Rounds(40) {
		seed := campaign.Seed() + uint64(i)
		choose := rand.New(rand.NewPCG(seed, 9))
		dir := made(t, Options{SegmentSize: 4 << 10, NoPacking: true}, 60)
		all := reopen(t, dir, Options{ReadOnly: true})
		last, err := all.Head(background)
		require.NoError(t, err)
		require.NoError(t, all.Close())
		what := fmt.Sprintf("seed %d: %s", seed, cutJournal(t, dir, choose))

		e, err := Open(background, dir, Options{ReadOnly: true})
		if err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt, what)
			segment, statErr := os.Stat(filepath.Join(dir, journalDir, "0000000001.seg"))
			require.True(t, statErr != nil || segment.Size() < 64, "%s: nothing of the journal is whole: %v", what, err)
			continue
		}
		head, err := e.Head(background)
		require.NoError(t, err, what)
		require.Equal(t, head.Number < last.Number, e.Damage() != nil, "%s: %d commits: %v", what, head.Number, e.Damage())
		if head.Number > 0 {
			requireMessages(t, e, head.Number)
		}
		stats, err := e.Stats(background)
		require.NoError(t, err, what)
		require.EqualValues(t, head.Number, stats.Spans, what)
		var number uint64
		for c, err := range e.Feed(background, backend.Cursor{}) {
			require.NoError(t, err, what)
			number++
			require.Equal(t, number, c.Number, what)
		}
		require.Equal(t, head.Number, number, what)
		require.NoError(t, e.Close())

		to := filepath.Join(t.TempDir(), "salvaged")
		_, err = Salvage(background, dir, to, SalvageOptions{})
		if head.Number == 0 {
			continue
		}
		require.NoError(t, err, what)
		e = reopen(t, to, Options{})
		requireMessages(t, e, head.Number)
	}
}

// TestEmptyJournal opens a store of which nothing is left but the name of the first segment. The error
// names it.
func TestEmptyJournal(t *testing.T) {
	dir := made(t, Options{}, 3)
	require.NoError(t, os.Truncate(filepath.Join(dir, journalDir, "0000000001.seg"), 0))
	require.NoError(t, os.Remove(filepath.Join(dir, indexFile)))
	_, err := Open(background, dir, Options{ReadOnly: true})
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.ErrorContains(t, err, "0000000001.seg")
}
