// Command lineage-operations measures the operations of the context engine compared with the package
// @deepagents/context, by processor time. See bench.CompareOperations.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/lineage-store/lineage/bench"
)

func main() {
	var c bench.Config
	pflag.StringVar(&c.NodeModules, "deepagents", "", "folder whose node_modules has @deepagents/context")
	pflag.StringVar(&c.Dir, "dir", "", "where stores are made (default the system's temporary directory)")
	pflag.IntSliceVar(&c.Sizes, "sizes", nil, "messages of a chat (default 100,10000)")
	pflag.IntVar(&c.Rounds, "rounds", 0, "rounds of which the median counts (default 7)")
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all, err := bench.CompareOperations(ctx, c)
	if err == nil {
		err = bench.WriteOperations(os.Stdout, all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lineage-operations:", err)
		os.Exit(1)
	}
}
