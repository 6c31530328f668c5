package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

func restoreCheckpointCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "restore-checkpoint NAME",
		Short:   "Create a branch at a checkpoint and switch to it",
		Example: `  lineage restore-checkpoint start`,
		Args:    cobra.ExactArgs(1),
		RunE: a.onThreads(changing, func(ctx context.Context, in threads, args []string) error {
			b, err := in.restoreCheckpoint(ctx, args[0])
			return a.printBranch(b, "now on branch", err)
		}),
	}
}

// restoreCheckpoint implements threads.
func (s *session) restoreCheckpoint(ctx context.Context, name string) (*branchRecord, error) {
	t, err := s.needThread()
	if err != nil {
		return nil, err
	}
	at, err := t.Checkpoint(ctx, name)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, unknownCheckpoint(ctx, s, name)
	}
	if err != nil {
		return nil, err
	}
	return switchToNew(ctx, t, at.Span)
}

// unknownCheckpoint returns the error for a name that no checkpoint has.
func unknownCheckpoint(ctx context.Context, in threads, name string) error {
	checkpoints, err := in.listCheckpoints(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, c := range checkpoints {
		names = append(names, c.Name)
	}
	return refs.Unknown("checkpoint", name, names)
}
