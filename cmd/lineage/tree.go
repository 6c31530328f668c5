package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage/graph"
)

type treeOptions struct {
	thread string
	full   bool
}

func treeCommand(a *app) *cobra.Command {
	o := &treeOptions{}
	c := &cobra.Command{
		Use:   "tree [THREAD]",
		Short: "Draw the histories of a thread",
		Long: `Draws the histories of a thread as a tree: messages from top to bottom, the line of the active
branch straight down, and forks to its right. The names of branches (* is the active one),
checkpoints (◆), forks, subagents and alternatives are shown at their message. Long parts
without a name, and the records that an import keeps beside the messages, are folded unless
--full is given.`,
		Example: `  lineage tree
  lineage tree lisbon --full
  lineage tree --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, args []string) error {
			o.thread = arg(args, 0)
			return in.tree(ctx, o)
		}),
	}
	c.Flags().BoolVar(&o.full, "full", false, "show every message and fork")
	return c
}

// forest is a graph that is drawn.
type forest struct {
	*app
	*graph.Graph
	full bool
	// digits is the width of the longest position.
	digits int
	// point returns how a message is shown.
	point func(ctx context.Context, at graph.Place) (*treePoint, error)
}

// treePoint is what a tree shows of a message.
type treePoint struct{ speaker, role, text string }
