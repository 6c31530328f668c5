package main

import (
	"context"

	"github.com/spf13/cobra"
)

func threadUseCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "use THREAD",
		Short:   "Make a thread the current one",
		Example: `  lineage thread use lisbon`,
		Args:    cobra.ExactArgs(1),
		RunE:    a.on(noThread, func(ctx context.Context, s *session, args []string) error { return runThreadUse(ctx, s, args[0]) }),
	}
}

func runThreadUse(ctx context.Context, s *session, name string) error {
	t, err := s.refs.Thread(ctx, name)
	if err != nil {
		return err
	}
	if err := s.useThread(t.ID()); err != nil {
		return err
	}
	s.thread = t
	r, err := s.threadRecord(ctx, t)
	if err != nil {
		return err
	}
	title, err := inStore{s}.titleOf(ctx, r)
	if err != nil {
		return err
	}
	return s.print(r, "now on %s, branch %s\n", title, r.Branch)
}
