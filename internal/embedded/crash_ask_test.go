package embedded

import (
	"context"
	"encoding/json"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// ask queries an engine for everything about the subjects of commits, including
// lost ones.
func ask(t tester, e *Engine, about []*structure.Commit) backendtest.Facts {
	t.Helper()
	facts := backendtest.Ask(t, e, censusOf(about))
	feed := []string{}
	for c, err := range e.Feed(context.Background(), backend.Cursor{}) {
		if err != nil {
			delete(facts, "feed")
			return facts
		}
		feed = append(feed, text(c))
	}
	facts["feed"] = feed
	return facts
}

func censusOf(about []*structure.Commit) *backendtest.Census {
	seen := backendtest.NewCensus()
	for _, c := range about {
		seen.Add(c)
	}
	return seen
}

// expected returns the answers of a store that has the commits, to queries
// about others.
func expected(t tester, commits, about []*structure.Commit) backendtest.Facts {
	t.Helper()
	m := backendtest.ModelOf(t, commits...)
	facts, feed := m.Facts(censusOf(about)), []string{}
	for _, c := range m.Feed() {
		feed = append(feed, text(&c))
	}
	facts["feed"] = feed
	return facts
}

// text describes a commit without its id, which is random.
func text(c *structure.Commit) string {
	own := *c
	own.ID = 0
	b, err := json.Marshal(&own)
	if err != nil {
		return "cannot be written: " + err.Error()
	}
	return string(b)
}
