// Package conversations has the commands about threads and about named values.
package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func ThreadCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "thread",
		Aliases: []string{"threads"},
		Short:   "List, create and change threads",
		Long: `Lists, creates and changes threads. A thread is a conversation with its branches and checkpoints. Without a subcommand, threads
are listed.`,
		Example: `  lineage thread
  lineage thread create --title "Trip to Porto" --id porto`,
		Args: app.KnownCommand,
		RunE: threads.On(a, app.Reading, func(ctx context.Context, in threads.Keeper, _ []string) error {
			return runThreadList(ctx, a, in, &threads.ThreadListOptions{})
		}),
	}
	c.AddCommand(
		threadListCommand(a), threadCreateCommand(a), threadShowCommand(a), threadSetCommand(a), threadUseCommand(a), threadDeleteCommand(a),
	)
	return c
}
