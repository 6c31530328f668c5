package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func threadDeleteCommand(a *app.App) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:   "delete THREAD",
		Short: "Delete a thread with its branches, contexts and checkpoints",
		Long: `Deletes a thread with its branches, contexts and checkpoints. What other threads share with
it stays theirs. It shows what it would delete and asks first, unless --yes is given. It cannot be undone: the
records that lead to the messages are removed at once, although the bytes that nothing else uses stay on
disk until 'lineage gc'. 'lineage bundle create' beforehand keeps a copy of the thread.`,
		Example: `  lineage thread delete lisbon --yes`,
		Args:    cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			return threads.Destroy(ctx, a, yes, func(ctx context.Context, in threads.Keeper) (*app.Destruction, error) {
				return in.ThreadToDelete(ctx, args[0])
			})
		}),
	}
	app.YesFlag(c, &yes)
	return c
}
