package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func RewindCommand(a *app.App) *cobra.Command {
	inPlace := false
	c := &cobra.Command{
		Use:   "rewind POSITION",
		Short: "Go back to an earlier message",
		Long: `Creates a branch at an earlier message and switches to it; the later messages stay on the branch
that has them. With --in-place the branch itself is moved back instead, which 'lineage undo'
undoes.`,
		Example: `  lineage rewind @{2}
  lineage rewind main:1 --json
  lineage rewind cheap~1 --in-place`,
		Args: cobra.ExactArgs(1),
		RunE: threads.On(a, app.Changing, func(ctx context.Context, in threads.Keeper, args []string) error {
			if inPlace {
				return in.RewindInPlace(ctx, args[0])
			}
			b, err := in.Rewind(ctx, args[0])
			return show.PrintBranch(a, b, "now on branch", err)
		}),
	}
	c.Flags().BoolVar(&inPlace, "in-place", false, "move the branch or context itself")
	return c
}
