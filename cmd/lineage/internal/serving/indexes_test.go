package serving

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/mcp"
	"github.com/lineage-store/lineage/server/page"
)

// A search answers before the index has the whole store, and has the rest indexed in the background.
func TestSearchWhileIndexing(t *testing.T) {
	defer func(limit int, d time.Duration) { searched.WindowLimit, UpdateFor = limit, d }(searched.WindowLimit, UpdateFor)
	searched.WindowLimit, UpdateFor = 1, 10
	store := lineagetest.New(t, lineage.Options{})
	c, err := store.NewContext(t.Context(), lineage.ContextOptions{})
	require.NoError(t, err)
	const messages = 20
	for range messages {
		_, err := c.Extend(t.Context(), lineage.User("walrus"))
		require.NoError(t, err)
	}
	p := &sharedIndexes{store: store, dir: t.TempDir()}
	var behind uint64
	missing := func(commits uint64) { behind = commits }
	hits, err := p.search(t.Context(), page.SearchQuery{Text: "walrus", Limit: 100, Behind: missing})
	require.NoError(t, err)
	require.NotZero(t, behind)
	require.LessOrEqual(t, len(hits)+int(behind), messages)
	require.Eventually(t, func() bool {
		behind = 0
		found, err := p.find(t.Context(), mcp.SearchQuery{Text: "walrus", Limit: 100, Behind: missing})
		require.NoError(t, err)
		return behind == 0 && len(found) == messages
	}, time.Minute, time.Millisecond)
	require.NoError(t, p.close())
	running, ended := p.indexing.state()
	require.False(t, running)
	require.True(t, ended)
}
