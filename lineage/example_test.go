package lineage_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/lineage-store/lineage/lineage"
)

// A fork shares the history before it and continues on its own.
func Example() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent.lineage")
	check(err)
	defer os.RemoveAll(dir)
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	check(err)
	defer store.Close()

	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{Title: "Colours"})
	check(err)
	main, err := thread.Active(ctx)
	check(err)
	_, err = main.Extend(ctx, lineage.User("Name a colour."), lineage.Assistant("Blue."))
	check(err)

	other, err := main.Fork(ctx, lineage.ForkOptions{}) // one small record, however long the history
	check(err)
	_, err = other.Extend(ctx, lineage.User("And another."), lineage.Assistant("Green."))
	check(err)

	for entry, err := range other.Entries(ctx, lineage.Window{}) {
		check(err)
		text, err := store.Text(ctx, entry)
		check(err)
		fmt.Printf("%d %s: %s\n", entry.Position, entry.Role, text)
	}
	// Output:
	// 1 user: Name a colour.
	// 2 assistant: Blue.
	// 3 user: And another.
	// 4 assistant: Green.
}
