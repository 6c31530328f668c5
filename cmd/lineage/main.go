// Lineage is the command line for lineage stores. It keeps the conversations of LLM agents, forks, edits and merges
// them, and shows where anything came from.
//
// Each command is a file in one of the packages below internal, which group commands by what they work on. The file
// has the options of the command, their flags, and a function that does the work.
package main

import (
	"context"
	"os"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/memory"
)

func main() {
	memory.Bound()
	ctx := app.EndOnSignals(context.Background(), app.Grace)
	os.Exit(execute(ctx, app.New(os.Stdin, os.Stdout, os.Stderr, os.Getenv), os.Args[1:]))
}
