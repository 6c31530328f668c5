package main

import (
	"context"

	"github.com/spf13/cobra"
)

func undoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "undo [CONTEXT]",
		Short: "Take the last move of a context back",
		Long: `Takes the last move of a context back: a rewind in place, a replacing merge, another choice. Going
forward is no move. Undoing twice leads back to where it stood. 'lineage reflog' lists the moves.`,
		Example: `  lineage rewind @{1} --in-place && lineage undo`,
		Args:    cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return a.change(ctx, func(ctx context.Context, s *session) error { return runUndo(ctx, s, arg(args, 0)) })
		}),
	}
}

func runUndo(ctx context.Context, s *session, name string) error {
	found, err := s.context(ctx, name)
	if err != nil {
		return err
	}
	from := found.Span
	if err := found.Context.Undo(ctx); err != nil {
		return err
	}
	return s.moved(ctx, found, from)
}
