package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func SwitchCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "switch BRANCH",
		Short:   "Switch to a branch",
		Example: `  lineage switch cheap`,
		Args:    cobra.ExactArgs(1),
		RunE: threads.On(a, app.Changing, func(ctx context.Context, in threads.Keeper, args []string) error {
			b, err := in.SwitchTo(ctx, args[0])
			return show.PrintBranch(a, b, "now on branch", err)
		}),
	}
}
