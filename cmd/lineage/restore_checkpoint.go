package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

func restoreCheckpointCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "restore-checkpoint NAME",
		Short:   "Create a branch at a checkpoint and switch to it",
		Example: `  lineage restore-checkpoint start`,
		Args:    cobra.ExactArgs(1),
		RunE: a.onThreads(changing, func(ctx context.Context, in threads, args []string) error {
			b, err := restoreCheckpoint(ctx, in, args[0])
			return a.printBranch(b, "now on branch", err)
		}),
	}
}

func restoreCheckpoint(ctx context.Context, in threads, name string) (*records.Branch, error) {
	checkpoints, err := in.listCheckpoints(ctx, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range checkpoints {
		if c.Name == name {
			return in.rewind(ctx, c.Message)
		}
		names = append(names, c.Name)
	}
	return nil, refs.Unknown("checkpoint", name, names)
}
