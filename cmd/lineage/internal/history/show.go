package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func ShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context or message",
		Long: `Shows a context or branch with its origin and settings, or a message with its
whole text and origin.`,
		Example: `  lineage show
  lineage show :2
  lineage show cheap --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: threads.On(a, app.Reading, func(ctx context.Context, in threads.Keeper, args []string) error {
			return in.Show(ctx, app.Arg(args, 0))
		}),
	}
}
