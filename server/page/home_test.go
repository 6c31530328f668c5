package page_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/server/page"
)

// A conversation with a recent message is running, but not one that was imported without times.
func TestRunning(t *testing.T) {
	s := newSite(t, page.Options{})
	_, err := archive.Import(t.Context(), s.store, archive.Stream("old.jsonl", strings.NewReader(`{"messages":[{"role":"user","content":"undated"},{"role":"assistant","content":"yes"}]}`)), archive.Options{})
	require.NoError(t, err)
	_, body := s.get("/")
	require.Contains(t, body, `class="row"`)
	require.NotContains(t, body, `class="row running"`)
	s.thread(lineage.ThreadOptions{CreatedAt: time.Now().Add(-time.Hour)}, lineage.User("now"))
	_, body = s.get("/")
	require.Contains(t, body, `class="row running"`)
}
