package search_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
)

// feature: storage/search-all
func TestEverythingIsFound(t *testing.T) {
	store, x := open(t, t.TempDir())
	defer store.Close()
	defer x.Close()
	searchtest.Everything(t, store, x)
}

func TestEqualIDs(t *testing.T) {
	store, x := open(t, t.TempDir())
	defer store.Close()
	defer x.Close()
	searchtest.EqualIDs(t, store, x)
}

func TestOutdated(t *testing.T) {
	store, x := open(t, t.TempDir())
	defer store.Close()
	defer x.Close()
	searchtest.Outdated(t, store, x)
}

// TestFindsWhatIsSeen changes threads of two users at random, with forks across them, and compares
// search results, of words and nearest to a vector, with what threads and contexts see. An updated
// index returns the same results as a new one.
//
// feature: lineage/nearest
func TestFindsWhatIsSeen(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	rapid.Check(t, func(r *rapid.T) {
		searched.WindowLimit = rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "window")
		dir := t.TempDir()
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		x, err := search.Open(bg, store, dir, new(counter).options())
		require.NoError(r, err)
		defer func() { require.NoError(r, x.Close()) }()
		axis := rapid.Float32Range(-1, 1).Draw(r, "axis")
		m := searchtest.NewMachine(r, store)
		m.Also = func(x *search.Index, q search.Query, seen map[string]string) { compareNearest(r, x, axis, q, seen) }
		for range rapid.IntRange(10, 60).Draw(r, "steps") {
			m.Step()
			if rapid.IntRange(0, 5).Draw(r, "search") == 0 {
				m.Check(x)
			}
		}
		m.Check(x)
		_, err = store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		require.NoError(r, err)
		m.Check(x)
		fresh, err := search.Open(bg, store, t.TempDir(), new(counter).options())
		require.NoError(r, err)
		defer fresh.Close()
		m.Check(fresh)
	})
}

// TestUnfinishedFindsWhatIsSeen changes a store at random between searches that have no time to bring the index up to date,
// with two handles of one file.
func TestUnfinishedFindsWhatIsSeen(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	rapid.Check(t, func(r *rapid.T) {
		searched.WindowLimit = rapid.SampledFrom([]int{1, 7, 30}).Draw(r, "window")
		dir := t.TempDir()
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		var indexes []*search.Index
		for range 2 {
			x, err := search.Open(bg, store, dir, search.Options{})
			require.NoError(r, err)
			defer func() { require.NoError(r, x.Close()) }()
			indexes = append(indexes, x)
		}
		m := searchtest.NewMachine(r, store)
		for range rapid.IntRange(1, 4).Draw(r, "rounds") {
			for range rapid.IntRange(1, 20).Draw(r, "steps") {
				m.Step()
			}
			m.Behind, m.UpdateFor = true, 1
			m.Check(indexes[1])
			for range rapid.IntRange(0, 5).Draw(r, "more") {
				m.Step()
			}
			m.Unfinished(indexes...)
		}
	})
}
