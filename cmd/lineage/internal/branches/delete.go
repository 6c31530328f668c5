package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func DeleteCommand(a *app.App) *cobra.Command {
	o := &threads.DeleteOptions{}
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a branch, checkpoint or context",
		Long: `Deletes a branch with its context, a context that has no name, or a checkpoint. Messages
that other histories share stay. It shows what it would delete and asks first, unless --yes is given; it cannot be
undone. 'lineage thread delete' deletes a whole thread, and 'lineage erase' bytes.`,
		Example: `  lineage delete cheap --yes
  lineage delete start --checkpoint --yes`,
		Args: cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.Name = args[0]
			return threads.Destroy(ctx, a, o.Yes, func(ctx context.Context, in threads.Keeper) (*app.Destruction, error) {
				return in.NameToDelete(ctx, o)
			})
		}),
	}
	c.Flags().BoolVar(&o.Checkpoint, "checkpoint", false, "the checkpoint of that name, where a branch has it too")
	app.YesFlag(c, &o.Yes)
	return c
}
