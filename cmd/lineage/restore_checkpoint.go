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
		RunE:    a.does(func(ctx context.Context, args []string) error { return runRestoreCheckpoint(ctx, a, args[0]) }),
	}
}

func runRestoreCheckpoint(ctx context.Context, a *app, name string) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.restoreCheckpoint(ctx, name) })
	}
	return a.open(ctx, changing, func(ctx context.Context, s *session) error {
		t, err := s.needThread()
		if err != nil {
			return err
		}
		at, err := t.Checkpoint(ctx, name)
		if errors.Is(err, lineage.ErrNotFound) {
			checkpoints, listErr := t.Checkpoints(ctx)
			if listErr != nil {
				return listErr
			}
			var names []string
			for _, c := range checkpoints {
				names = append(names, c.Name)
			}
			return refs.Unknown("checkpoint", name, names)
		}
		if err != nil {
			return err
		}
		b, err := branchAt(ctx, t, lineage.BranchOptions{At: at.Span, Switch: true})
		if err != nil {
			return err
		}
		return s.branchMade(b)
	})
}
