package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// listingStore is a store with n threads, of which every hundredth belongs to a user and has
// a value in its metadata.
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

// listingWork returns how much the first page of a listing looks at.
func listingWork(t *testing.T, e *Engine, q backend.ThreadQuery) (cost int) {
	t.Helper()
	h, err := e.hold()
	require.NoError(t, err)
	defer h.release(errReleased)
	n := 0
	l := lister{view: h.view, ctx: background, q: q, yield: func(_ backend.ThreadListing, err error) bool {
		require.NoError(t, err)
		n++
		return n < 20
	}}
	require.NoError(t, l.list())
	require.Positive(t, n)
	return l.work
}

// A page of a listing costs what is on it, once what changed is folded.
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
			limit = backend.ManyMatches // they grow with what matches
		}
		require.LessOrEqual(t, large[name], limit, "%s costs %d with 1,500 threads", name, cost)
	}
}

// A listing that finds that many threads changed has them folded.
func TestListingFolds(t *testing.T) {
	e := listingStore(t, manyChanged+1000)
	require.Greater(t, listingWork(t, e, backend.ThreadQuery{}), manyChanged)
	require.Eventually(t, func() bool { return listingWork(t, e, backend.ThreadQuery{}) < 100 }, time.Minute, 10*time.Millisecond)
}
