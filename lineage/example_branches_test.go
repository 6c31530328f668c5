package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// A thread keeps every path of its conversation as a branch.
func ExampleThread() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{Title: "Names"})
	must(err)
	main, err := thread.Active(ctx)
	must(err)
	spans, err := main.Extend(ctx, lineage.User("Name a cat."), lineage.Assistant("Tom."))
	must(err)
	_, err = thread.SetCheckpoint(ctx, "named", lineage.CheckpointOptions{})
	must(err)

	nameOf := func(c *lineage.Context) string {
		info, err := c.Info(ctx)
		must(err)
		return info.Branch
	}
	aside, err := thread.CreateBranch(ctx, "", lineage.BranchOptions{}) // for a question on the side; main stays active
	must(err)
	fmt.Println("aside:", nameOf(aside))
	retry, err := thread.CreateBranch(ctx, "", lineage.BranchOptions{At: spans[0], Switch: true}) // try again from there
	must(err)
	fmt.Println("rewound:", nameOf(retry))
	_, err = retry.Extend(ctx, lineage.Assistant("Felix."))
	must(err)
	named, err := thread.Checkpoint(ctx, "named")
	must(err)
	restored, err := thread.CreateBranch(ctx, "", lineage.BranchOptions{At: named.Span, Switch: true})
	must(err)
	fmt.Println("restored:", nameOf(restored))
	must(thread.Switch(ctx, lineage.MainBranch))

	branches, err := thread.Branches(ctx)
	must(err)
	for _, b := range branches {
		c, err := thread.BranchContext(ctx, b.Name)
		must(err)
		label := b.Name
		if b.Active {
			label += " (active)"
		}
		show(label, c)
	}
	// Output:
	// aside: main-v2
	// rewound: main-v3
	// restored: main-v3-v2
	// main (active): Name a cat. | Tom.
	// main-v2: Name a cat. | Tom.
	// main-v3: Name a cat. | Felix.
	// main-v3-v2: Name a cat. | Tom.
}
