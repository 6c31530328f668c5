package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/page"
)

// BenchmarkViews measures a request of each view: of a conversation of 100,000 messages and 1,000 branches, and of a list
// of 15,000 conversations.
func BenchmarkViews(b *testing.B) {
	s := newSite(b, page.Options{})
	ctx := b.Context()
	for i := range 15_000 {
		s.thread(lineage.ThreadOptions{Title: fmt.Sprint("conversation ", i), Metadata: []byte(fmt.Sprintf(`{"agent":"a%d"}`, i%5))}, lineage.User("question"), lineage.Assistant(fmt.Sprint("answer ", i)))
	}
	thread, main := s.thread(lineage.ThreadOptions{Title: "long"})
	for i := range 1000 {
		var items []lineage.Item
		for k := range 50 {
			items = append(items, lineage.User(fmt.Sprintf("question %d of %d", k, i)),
				lineage.Assistant(fmt.Sprintf("Some **text** %d of %d.\n\n```go\nfunc f%d() { return %d }\n```\n\n- a list\n- of %s\n", k, i, k, i, strings.Repeat("words ", 20))))
		}
		_, err := main.Extend(ctx, items...)
		require.NoError(b, err)
		tip, err := main.Tip(ctx)
		require.NoError(b, err)
		at, err := s.store.At(ctx, tip, uint64(i*100+50))
		require.NoError(b, err)
		branch, err := thread.CreateBranch(ctx, fmt.Sprint("branch ", i), lineage.BranchOptions{At: at})
		require.NoError(b, err)
		_, err = branch.Extend(ctx, lineage.User("elsewhere"))
		require.NoError(b, err)
	}
	id := thread.ID().String()
	n := 0
	for name, path := range map[string]func() string{
		"home":         func() string { return "/" },
		"home-agent":   func() string { return "/?agent=a3" },
		"conversation": func() string { return "/t/" + id },
		"window":       func() string { n += 100; return fmt.Sprintf("/t/%s?at=%d", id, n%100_000) }, // not rendered before
		"append":       func() string { return "/t/" + id + "?from=100000&part" },
		"graph":        func() string { return "/t/" + id + "/graph" },
		"graph-name":   func() string { return "/t/" + id + "/graph?name=branch+77" },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				status, _ := s.get(path())
				require.Equal(b, 200, status)
			}
		})
	}
}
