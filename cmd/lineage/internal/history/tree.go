package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func TreeCommand(a *app.App) *cobra.Command {
	o := &threads.TreeOptions{}
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
		RunE: threads.On(a, app.Reading, func(ctx context.Context, in threads.Keeper, args []string) error {
			o.Thread = app.Arg(args, 0)
			return in.Tree(ctx, o)
		}),
	}
	c.Flags().BoolVar(&o.Full, "full", false, "show every message and fork")
	return c
}
