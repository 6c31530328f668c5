package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// A fork shares the history of its parent and continues on its own.
func ExampleContext_Fork() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	main, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	spans, err := main.Extend(ctx, lineage.User("Plan a trip."), lineage.Assistant("Where to?"), lineage.User("Oslo."))
	must(err)

	retry, err := main.Fork(ctx, lineage.ForkOptions{At: spans[1]}) // anywhere in the history
	must(err)
	_, err = retry.Extend(ctx, lineage.User("Rome."))
	must(err)

	show("main", main)
	show("retry", retry)
	a, err := main.Tip(ctx)
	must(err)
	b, err := retry.Tip(ctx)
	must(err)
	common, err := store.CommonPrefix(ctx, a, b)
	must(err)
	fmt.Print(common, " shared, then")
	for _, c := range []*lineage.Context{main, retry} {
		for e, err := range c.Entries(ctx, lineage.Window{From: common + 1}) {
			must(err)
			fmt.Printf(" %q", e.Excerpt())
		}
	}
	fmt.Println()
	// Output:
	// main: Plan a trip. | Where to? | Oslo.
	// retry: Plan a trip. | Where to? | Rome.
	// 2 shared, then "Oslo." "Rome."
}

// Merging appends what the other has added since the two diverged, once.
func ExampleContext_Merge() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	main, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	_, err = main.Extend(ctx, lineage.User("Two ideas, please."))
	must(err)
	side, err := main.Fork(ctx, lineage.ForkOptions{})
	must(err)
	_, err = main.Extend(ctx, lineage.Assistant("A kite."))
	must(err)
	_, err = side.Extend(ctx, lineage.Assistant("A boat."))
	must(err)

	for range 2 {
		added, err := main.Merge(ctx, side)
		must(err)
		fmt.Println("added", len(added))
	}
	show("main", main)
	// Output:
	// added 1
	// added 0
	// main: Two ideas, please. | A kite. | A boat.
}
