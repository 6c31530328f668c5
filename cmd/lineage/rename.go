package main

import (
	"context"

	"github.com/spf13/cobra"
)

func renameCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rename BRANCH NAME",
		Short:   "Rename a branch",
		Example: `  lineage rename cheap budget`,
		Args:    cobra.ExactArgs(2),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if err := newName(args[1]); err != nil {
				return err
			}
			return a.open(ctx, changing, func(ctx context.Context, s *session) error { return runRename(ctx, s, args[0], args[1]) })
		}),
	}
}

func runRename(ctx context.Context, s *session, name, newName string) error {
	found, home, err := s.namedBranch(ctx, name)
	if err != nil {
		return err
	}
	if err := home.NameBranch(ctx, newName, found.Context); err != nil {
		return err
	}
	b, err := branchOf(ctx, home, found.Context)
	return s.printBranch(b, "now on branch", err)
}
