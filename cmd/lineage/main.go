// Lineage is the command line of lineage stores: it keeps the conversations of LLM
// agents, forks, edits and merges them, and shows where anything came from.
//
// A command is a file of one of the packages below internal, which group commands by what
// they work on: its options, how they are bound to flags, and a function that does it.
package main

import (
	"context"
	"os"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

func main() {
	ctx := app.EndOnSignals(context.Background(), app.Grace)
	os.Exit(execute(ctx, app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv), os.Args[1:]))
}
