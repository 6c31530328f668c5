package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

func asideCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "aside [TEXT]",
		Short: "Create a branch without switching to it",
		Long: `Creates a branch at the tip of the active one and does not switch to it: a place for a
question on the side. A text is its first own message.`,
		Example: `  lineage aside "What does alfacinha mean?"`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    a.on(changing, func(ctx context.Context, s *session, args []string) error { return runAside(ctx, s, arg(args, 0)) }),
	}
}

func runAside(ctx context.Context, s *session, text string) error {
	t, err := s.needThread()
	if err != nil {
		return err
	}
	aside, err := t.CreateBranch(ctx, "", lineage.BranchOptions{})
	if err != nil {
		return err
	}
	if text != "" {
		if _, err := aside.Extend(ctx, lineage.User(text)); err != nil {
			return err
		}
	}
	b, err := branchOf(ctx, t, aside)
	return s.printBranch(b, "now on branch", err)
}
