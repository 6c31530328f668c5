package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func switchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "switch BRANCH",
		Short:   "Switch to a branch",
		Example: `  lineage switch cheap`,
		Args:    cobra.ExactArgs(1),
		RunE: a.onThreads(changing, func(ctx context.Context, in threads, args []string) error {
			b, err := in.switchTo(ctx, args[0])
			return a.printBranch(b, "now on branch", err)
		}),
	}
}

// switchTo implements threads.
func (s *session) switchTo(ctx context.Context, name string) (*records.Branch, error) {
	found, home, err := s.namedBranch(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := home.Switch(ctx, found.Branch); err != nil {
		return nil, err
	}
	if home.ID() != s.thread.ID() {
		if err := s.useThread(home.ID()); err != nil {
			return nil, err
		}
	}
	return branchOf(ctx, home, found.Context)
}

// namedBranch returns the context that a name stands for, which must be a branch, and its thread.
func (s *session) namedBranch(ctx context.Context, name string) (*refs.Ref, *lineage.Thread, error) {
	found, err := s.refs.Context(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if found.Branch == "" {
		return nil, nil, hint(usagef("context %s has no name, so it is not a branch", found.Context.ID()),
			"'lineage branch NAME --from %s' makes a branch of it", found.Context.ID())
	}
	home, err := s.home(found)
	return found, home, err
}
