package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// What one agent tells another is one block of content, used in the histories of
// both.
func ExampleContext_Say() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	planner, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	coder, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)

	_, _, err = planner.Say(ctx, coder, lineage.Assistant("Sort the list."), lineage.Item{Role: "user", Name: "planner"})
	must(err)
	_, _, err = coder.Say(ctx, planner, lineage.Assistant("Done."), lineage.Item{Role: "user", Name: "coder"})
	must(err)

	for e, err := range coder.Entries(ctx, lineage.Window{}) {
		must(err)
		fmt.Printf("%s %s: %s\n", e.Role, e.Name, e.Text())
	}
	first, err := planner.Last(ctx, 2)
	must(err)
	uses := 0
	for _, err := range store.Where(ctx, first[0].Content) {
		must(err)
		uses++
	}
	fmt.Println("used", uses, "times")
	// Output:
	// user planner: Sort the list.
	// assistant assistant: Done.
	// used 2 times
}
