package importer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// treeRow is a line with a message, as message trees are published.
type treeRow struct {
	ID     string  `json:"message_id"`
	Parent *string `json:"parent_id"`
	Text   string  `json:"text"`
	Role   string  `json:"role"`
	Tree   string  `json:"message_tree_id,omitempty"`
}

// requireTree requires that a thread has exactly the messages of a tree, each with its id and
// parent.
func requireTree(t require.TestingT, s *lineage.Store, tree string, rows []treeRow) {
	ctx := context.Background()
	thread, err := s.FindThread(ctx, tree)
	require.NoError(t, err)
	reached := make(map[string]bool)
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		for e, err := range c.Entries(ctx, lineage.Window{}) {
			require.NoError(t, err)
			reached[e.SourceID] = true
		}
	}
	require.Len(t, reached, len(rows))
	for _, r := range rows {
		require.True(t, reached[r.ID], "%s is on no branch", r.ID)
		e, err := thread.Find(ctx, r.ID)
		require.NoError(t, err)
		require.Equal(t, r.Text, e.Excerpt())
		var above []string
		for before, err := range s.History(ctx, e.Span, lineage.Window{}) {
			require.NoError(t, err)
			above = append(above, before.SourceID)
		}
		require.Equal(t, r.ID, above[len(above)-1])
		if r.Parent == nil {
			require.Len(t, above, 1)
		} else {
			require.Equal(t, *r.Parent, above[len(above)-2])
		}
	}
}

func lines(t require.TestingT, rows []treeRow) string {
	var b strings.Builder
	for _, r := range rows {
		line, err := json.Marshal(r)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// Equal siblings keep their own replies.
func TestEqualSiblings(t *testing.T) {
	text := func(s string) *string { return &s }
	rows := []treeRow{
		{"a", nil, "Who?", "prompter", "a"}, {"b1", text("a"), "John.", "assistant", "a"}, {"b2", text("a"), "John.", "assistant", "a"},
		{"c2", text("b2"), "Why?", "prompter", "a"}, {"d2", text("c2"), "Because.", "assistant", "a"},
	}
	s := storetest.New(t)
	importText(t, s, "", lines(t, rows), importer.Options{})
	requireTree(t, s, "a", rows)
}

// A tree is read from its lines in any order, even if several trees are mixed.
func TestRandomTreesOfRows(t *testing.T) {
	s, n := storetest.New(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		trees := make(map[string][]treeRow)
		var all []treeRow
		mixed := rapid.Bool().Draw(t, "mixed")
		for k := range rapid.IntRange(1, 3).Draw(t, "trees") {
			tree := fmt.Sprintf("%d-t%d-0", n, k)
			for i := range rapid.IntRange(1, 10).Draw(t, "messages") {
				r := treeRow{ID: fmt.Sprintf("%d-t%d-%d", n, k, i), Text: rapid.SampledFrom([]string{"John.", "Jane."}).Draw(t, "text"), Role: "assistant", Tree: tree}
				if i > 0 {
					parent := fmt.Sprintf("%d-t%d-%d", n, k, rapid.IntRange(0, i-1).Draw(t, "parent"))
					r.Parent = &parent
				}
				trees[tree] = append(trees[tree], r)
			}
			rows := trees[tree]
			if !mixed {
				rows = rapid.Permutation(rows).Draw(t, "order")
			}
			all = append(all, rows...)
		}
		if mixed { // parents before their replies, trees interleaved
			all = all[:0]
			for i := range 10 {
				for k := range 3 {
					tree := fmt.Sprintf("%d-t%d-0", n, k)
					if i < len(trees[tree]) {
						all = append(all, trees[tree][i])
					}
				}
			}
		}
		made := func() importer.Report {
			report, err := importer.Import(context.Background(), s, archive.Stream("", strings.NewReader(lines(t, all))), importer.Options{})
			require.NoError(t, err)
			require.Empty(t, report.Skipped)
			require.Empty(t, report.Repaired)
			require.EqualValues(t, len(trees), report.Conversations)
			return report
		}
		require.EqualValues(t, len(all), made().NewMessages)
		for tree, rows := range trees {
			requireTree(t, s, tree, rows)
		}
		head, err := s.View().Head(context.Background())
		require.NoError(t, err)
		require.Zero(t, made().NewMessages)
		now, err := s.View().Head(context.Background())
		require.NoError(t, err)
		require.Equal(t, head, now)
	})
}
