// Lineage is the command line of lineage stores: it keeps the conversations of LLM
// agents, forks, edits and merges them, and shows where anything came from.
//
// Each command is a file of its own: its options, how they are bound to flags, and
// a function that does it. Package screen writes for people, and package refs finds
// what a name stands for.
package main

import (
	"context"
	"os"
)

func main() {
	ctx := endOnSignals(context.Background(), grace)
	os.Exit(execute(ctx, newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv), os.Args[1:]))
}
