package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

func RestoreCheckpointCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "restore-checkpoint NAME",
		Short:   "Create a branch at a checkpoint and switch to it",
		Example: `  lineage restore-checkpoint start`,
		Args:    cobra.ExactArgs(1),
		RunE: threads.On(a, app.Changing, func(ctx context.Context, in threads.Keeper, args []string) error {
			b, err := restoreCheckpoint(ctx, in, args[0])
			return show.PrintBranch(a, b, "now on branch", err)
		}),
	}
}

func restoreCheckpoint(ctx context.Context, in threads.Keeper, name string) (*records.Branch, error) {
	checkpoints, err := in.ListCheckpoints(ctx, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range checkpoints {
		if c.Name == name {
			return in.Rewind(ctx, c.Message)
		}
		names = append(names, c.Name)
	}
	return nil, refs.Unknown("checkpoint", name, names)
}
