package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// A message from one agent to another is one block, used in both histories and added in one commit.
func ExampleContext_Send() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	planner, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	coder, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)

	tell := func(name string, from, to lineage.ContextID, text string) {
		must(store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
			here, err := tx.Context(ctx, from)
			if err != nil {
				return err
			}
			there, err := tx.Context(ctx, to)
			if err != nil {
				return err
			}
			if _, err := here.Extend(ctx, lineage.Assistant(text)); err != nil {
				return err
			}
			heard := lineage.User(text)
			heard.Name = name
			_, err = here.Send(ctx, there, heard)
			return err
		}))
	}
	tell("planner", planner.ID(), coder.ID(), "Sort the list.")
	tell("coder", coder.ID(), planner.ID(), "Done.")

	for e, err := range coder.Entries(ctx, lineage.Window{}) {
		must(err)
		fmt.Printf("%s %s: %s\n", e.Role, e.Name, e.Excerpt())
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
