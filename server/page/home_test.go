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
