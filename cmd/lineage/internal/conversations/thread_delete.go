package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func threadDeleteCommand(a *app.App) *cobra.Command {
	yes, user := false, ""
	var c *cobra.Command
	c = &cobra.Command{
		Use:   "delete [THREAD]",
		Short: "Delete a thread with its branches, contexts and checkpoints",
		Long: `Deletes a thread with its branches, contexts and checkpoints, or with --user everything of a user: all
threads of that user, and the values. What other threads share with
it stays theirs. It shows what it would delete and asks first, unless --yes is given. It cannot be undone: the
records that lead to the messages are removed at once, although the bytes that nothing else uses stay on
disk until 'lineage gc'. 'lineage bundle create' beforehand keeps a copy of the thread.`,
		Example: `  lineage thread delete lisbon --yes
  lineage thread create --user ada --id trip && lineage thread delete --user ada --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			switch ofUser := c.Flags().Changed("user"); {
			case ofUser && user == "":
				return app.EmptyName("--user")
			case ofUser == (len(args) == 1):
				return app.Usagef("name the thread to delete, or a user with --user")
			case ofUser:
				return threads.Destroy(ctx, a, yes, func(ctx context.Context, in threads.Keeper) (*app.Destruction, error) {
					return in.UserToDelete(ctx, user)
				})
			}
			return threads.Destroy(ctx, a, yes, func(ctx context.Context, in threads.Keeper) (*app.Destruction, error) {
				return in.ThreadToDelete(ctx, args[0])
			})
		}),
	}
	c.Flags().StringVar(&user, "user", "", "delete everything of this user")
	app.YesFlag(c, &yes)
	return c
}
