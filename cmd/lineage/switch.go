package main

import (
	"context"

	"github.com/spf13/cobra"
)

func switchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "switch BRANCH",
		Short:   "Switch to a branch",
		Example: `  lineage switch cheap`,
		Args:    cobra.ExactArgs(1),
		RunE:    a.does(func(ctx context.Context, args []string) error { return runSwitch(ctx, a, args[0]) }),
	}
}

func runSwitch(ctx context.Context, a *app, name string) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.switchTo(ctx, name) })
	}
	return a.open(ctx, changing, func(ctx context.Context, s *session) error {
		found, err := s.context(ctx, name)
		if err != nil {
			return err
		}
		if found.Branch == "" {
			s.nameBranch(ctx, found)
		}
		if found.Branch == "" {
			return hint(usagef("context %s has no name, and only a branch can be active", found.Context.ID()),
				"'lineage branch NAME --from %s' makes a branch of it", found.Context.ID())
		}
		home, err := s.home(found)
		if err != nil {
			return err
		}
		if err := home.Switch(ctx, found.Branch); err != nil {
			return err
		}
		b, err := home.Branch(ctx, found.Branch)
		if err != nil {
			return err
		}
		if home.ID() != s.thread.ID() {
			if err := s.useThread(home.ID()); err != nil {
				return err
			}
		}
		return s.branchMade(b)
	})
}
