package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/search/searchtest"
	"github.com/lineage-store/lineage/structure"
)

// Searches have one message in memory, whose occurrences the index yields together. They find and rank what is found and ranked with
// all messages in memory: of messages with several texts, and of steps with several messages.
func TestOneMessageInMemory(t *testing.T) {
	queries := []string{"ant", "bee OR cat", "ant bee", `"ant bee"`, "a*", "ant NOT bee", "sum AND b*", "NEAR(ant cat, 1)", "^cat", "c* OR a* NOT sum", "(ant OR dog) bee", "md*"}
	var many []string // more terms than a statement may have parts
	for i := range 1500 {
		many = append(many, fmt.Sprint("w", i))
	}
	queries = append(queries, `ant OR "`+strings.Join(many, " ")+`"`)
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		x, err := search.Open(bg, store, dir, search.Options{})
		require.NoError(r, err)
		defer func() { require.NoError(r, x.Close()) }()
		m := searchtest.NewMachine(r, store)
		words := func() string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"ant", "bee", "cat", "dog", "w1", "w2"}), 1, 5).Draw(r, "words"), " ")
		}
		for range rapid.IntRange(10, 40).Draw(r, "steps") {
			m.Step()
			if rapid.IntRange(0, 2).Draw(r, "several") > 0 {
				continue
			}
			c, err := store.NewContext(bg, lineage.ContextOptions{})
			require.NoError(r, err)
			_, err = c.Extend(bg,
				lineage.Together(lineage.User(words()), searchtest.Item(structure.DocumentUsage, words()+".md", content.TypeMarkdown, words()), lineage.User(words())),
				searchtest.Item(structure.MessageUsage, "", content.TypeJSON, fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q},{"type":"text","text":%q},{"type":"data-x","data":{"where":[%q]}}]}`, words(), words(), words())))
			require.NoError(r, err)
		}
		for _, q := range queries {
			for _, scope := range []search.Query{{}, {User: "ann"}, {Roles: []string{"user"}}} {
				scope.Text = q
				naive, found, err := search.BothWays(bg, x, scope)
				require.NoError(r, err)
				require.Equal(r, naive, found, "%+v", scope)
			}
		}
	})
}
