package page_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/server/page"
)

// A conversation with a recent message is running, but not one that was imported without times.
func TestRunning(t *testing.T) {
	s := newSite(t, page.Options{})
	_, err := importer.Import(t.Context(), s.store, archive.Stream("old.jsonl", strings.NewReader(`{"messages":[{"role":"user","content":"undated"},{"role":"assistant","content":"yes"}]}`)), importer.Options{})
	require.NoError(t, err)
	_, body := s.get("/")
	require.Contains(t, body, `class="row"`)
	require.NotContains(t, body, `class="row running"`)
	s.thread(lineage.ThreadOptions{CreatedAt: time.Now().Add(-time.Hour)}, lineage.User("now"))
	_, body = s.get("/")
	require.Contains(t, body, `class="row running"`)
}

// A row has the cost of its conversation where that is known.
func TestCostInTheList(t *testing.T) {
	var dear lineage.ThreadID
	s := newSite(t, page.Options{Cost: func(id lineage.ThreadID) string {
		if id == dear {
			return "$1.25"
		}
		return ""
	}})
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	s.thread(lineage.ThreadOptions{}, lineage.User("two"))
	dear = thread.ID()
	_, body := s.get("/")
	require.Equal(t, 1, strings.Count(body, `<span class="cost" title="cost">$1.25</span>`))
	require.Equal(t, 1, strings.Count(body, `class="cost"`))
}

// A list with costs of before a change says that others follow, also if they are known by the end of the list.
func TestCostsArePending(t *testing.T) {
	known := false
	s := newSite(t, page.Options{
		Cost:         func(lineage.ThreadID) string { known = true; return "$1.25" },
		CostsPending: func(context.Context) bool { return !known },
	})
	s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	_, body := s.get("/")
	require.Contains(t, body, "data-pending")
	_, body = s.get("/")
	require.NotContains(t, body, "data-pending")
}

// The list and the conversation of a thread in which only subagents have messages say so.
func TestOnlySubagents(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "Trip"})
	for _, text := range []string{"Find a train.", "Find a tram."} {
		subagent, err := main.Fork(t.Context(), lineage.ForkOptions{Metadata: []byte(`{"aside":"agent a1"}`)})
		require.NoError(t, err)
		_, err = subagent.Extend(t.Context(), lineage.User(text), lineage.Assistant("At nine."))
		require.NoError(t, err)
	}
	_, body := s.get("/")
	require.Contains(t, body, `<span class="n" title="messages of subagents">0&#43;4</span>`)
	_, body = s.get("/t/" + thread.ID().String())
	_, empty, found := strings.Cut(body, "Only subagents have messages here:")
	require.True(t, found)
	empty, _, _ = strings.Cut(empty, "</div>")
	require.Contains(t, empty, "Find a train.")
	require.Contains(t, empty, "Find a tram.")
	require.NotContains(t, body, "No messages yet")
	_, err := main.Extend(t.Context(), lineage.User("Plan it."))
	require.NoError(t, err)
	_, body = s.get("/")
	require.Contains(t, body, `<span class="n" title="messages">1</span>`)
}
