package lineage_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// exampleStore opens a store in a directory that done removes.
func exampleStore() (store *lineage.Store, done func()) {
	dir, err := os.MkdirTemp("", "agent.lineage")
	must(err)
	store, err = lineage.Open(context.Background(), dir, lineage.Options{})
	must(err)
	return store, func() {
		must(store.Close())
		must(os.RemoveAll(dir))
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// show prints a history on a line.
func show(label string, c *lineage.Context) {
	entries, err := c.All(context.Background())
	must(err)
	var said []string
	for _, e := range entries {
		said = append(said, e.Excerpt())
	}
	fmt.Printf("%s: %s\n", label, strings.Join(said, " | "))
}
