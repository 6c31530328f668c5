// Lineage-archives writes generated archives of conversations, to measure how much space they take.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/lineage-store/lineage/bench"
)

func main() {
	shape := flag.String("shape", "chats", "")
	n := flag.Int("n", 1000, "")
	seed := flag.Uint64("seed", 1, "")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: lineage-archives [-shape chats] [-n 1000] [-seed 1] DIR")
		for _, s := range slices.Sorted(maps.Keys(bench.Shapes)) {
			fmt.Fprintf(os.Stderr, "  %-10s %s\n", s, bench.Shapes[s])
		}
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := bench.Generate(flag.Arg(0), *shape, *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "lineage-archives:", err)
		os.Exit(1)
	}
}
