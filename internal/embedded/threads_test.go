package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// listingStore is a store with n threads, of which every hundredth belongs to a user and has a
// metadata value.
func listingStore(t *testing.T, n int) *Engine {
	t.Helper()
	e, err := Open(background, t.TempDir(), Options{Durability: backend.Normal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	var records []structure.Record
	for i := range n {
		th := &structure.Thread{ID: structure.NewID[structure.ThreadID](), Title: fmt.Sprint("Talk ", i), SourceID: fmt.Sprint("file/", i), UserID: "many"}
		th.Metadata = []byte(`{"kind":"chat"}`)
		if i%(n/50) == 0 {
			th.UserID, th.Metadata = "few", []byte(`{"kind":"chat","project":"x"}`)
		}
		records = append(records, th)
	}
	_, err = e.Apply(background, &structure.Commit{Records: records}, backend.Options{})
	require.NoError(t, err)
	return e
}

// listingWork returns the number of accesses for the first page of a listing.
func listingWork(t *testing.T, e *Engine, q backend.ThreadQuery) (cost int) {
	t.Helper()
	h, err := e.holds.take(&e.store)
	require.NoError(t, err)
	defer h.release(errReleased)
	n := 0
	counting := countingIndex{Index: h.view.Index}
	v := *h.view.View
	v.Index = &counting
	for _, err := range v.ListThreads(background, q) {
		require.NoError(t, err)
		if n++; n == 20 {
			break
		}
	}
	require.Positive(t, n)
	return counting.work
}

// countingIndex counts the seeks of a listing and the threads that are read.
type countingIndex struct {
	read.Index
	work int
}

func (c *countingIndex) Get(key []byte) ([]byte, bool, error) {
	if key[0] == keys.TableThread {
		c.work++
	}
	return c.Index.Get(key)
}

func (c *countingIndex) FirstDerived(from, to []byte) (index.Entry, bool, error) {
	c.work++
	return c.Index.FirstDerived(from, to)
}

func (c *countingIndex) LastDerived(from, to []byte) (index.Entry, bool, error) {
	c.work++
	return c.Index.LastDerived(from, to)
}

// After a fold, the cost of a page depends only on its length.
//
//test:norace
func TestListingsDoNotGrow(t *testing.T) {
	few, talk := "few", []backend.MetadataIs{{Key: "kind", Value: []byte(`"chat"`)}}
	project := []backend.MetadataIs{{Key: "project", Value: []byte(`"x"`)}}
	queries := map[string]backend.ThreadQuery{
		"all": {}, "oldest": {Oldest: true}, "user": {User: &few}, "metadata": {Metadata: project}, "common metadata": {Metadata: talk},
		"both": {User: &few, Metadata: append(project, talk...)}, "source": {SourcePrefix: "file/99"}, "title": {TitlePrefix: "talk 99"},
		"common source": {SourcePrefix: "file"}, "common title": {TitlePrefix: "TALK"},
	}
	costs := func(n int) map[string]int {
		e := listingStore(t, n)
		require.NoError(t, e.index.Checkpoint())
		costs := map[string]int{}
		for name, q := range queries {
			costs[name] = listingWork(t, e, q)
		}
		return costs
	}
	small, large := costs(1500), costs(10_000)
	t.Log(small, large)
	for name, cost := range small {
		limit := 2 * cost
		if name == "source" || name == "title" {
			limit = backend.ManyMatches // the cost grows with the matches
		}
		require.LessOrEqual(t, large[name], limit, "%s costs %d with 1,500 threads", name, cost)
	}
}

// A listing that finds so many changed threads starts a fold.
//
//test:norace
func TestListingFolds(t *testing.T) {
	e := listingStore(t, read.ManyChanged+1000)
	require.Greater(t, listingWork(t, e, backend.ThreadQuery{}), read.ManyChanged)
	require.Eventually(t, func() bool { return listingWork(t, e, backend.ThreadQuery{}) < 100 }, 2*time.Minute, 10*time.Millisecond)
}
