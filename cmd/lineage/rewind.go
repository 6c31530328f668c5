package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type rewindOptions struct {
	to      string
	inPlace bool
}

func rewindCommand(a *app) *cobra.Command {
	o := &rewindOptions{}
	c := &cobra.Command{
		Use:   "rewind POSITION",
		Short: "Go back to an earlier message",
		Long: `Creates a branch at an earlier message and switches to it; the later messages stay on the branch
that has it. With --in-place the branch itself goes back instead, which 'lineage undo'
takes back.`,
		Example: `  lineage rewind @{2}
  lineage rewind main:1 --json
  lineage rewind cheap~1 --in-place`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.to = args[0]
			return runRewind(ctx, a, o)
		}),
	}
	c.Flags().BoolVar(&o.inPlace, "in-place", false, "move the branch or context itself")
	return c
}

// branchAt makes a branch with an automatic name.
func branchAt(ctx context.Context, t *lineage.Thread, o lineage.BranchOptions) (lineage.BranchInfo, error) {
	made, err := t.CreateBranch(ctx, "", o)
	if err != nil {
		return lineage.BranchInfo{}, err
	}
	info, err := made.Info(ctx)
	if err != nil {
		return lineage.BranchInfo{}, err
	}
	return t.Branch(ctx, info.Branch)
}

func runRewind(ctx context.Context, a *app, o *rewindOptions) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.rewind(ctx, o) })
	}
	return a.open(ctx, changing, func(ctx context.Context, s *session) error {
		found, err := s.position(ctx, o.to)
		if err != nil {
			return err
		}
		home, err := s.home(found)
		if err != nil {
			return err
		}
		if !o.inPlace {
			b, err := branchAt(ctx, home, lineage.BranchOptions{At: found.Span, Empty: found.Span.IsZero(), Switch: true})
			if err != nil {
				return err
			}
			return s.branchMade(b)
		}
		if found.Context == nil {
			if found.Context, err = home.Active(ctx); err != nil {
				return err
			}
		}
		s.nameBranch(ctx, found)
		from, err := found.Context.Tip(ctx)
		if err != nil {
			return err
		}
		on, err := structure.IsAncestor(found.Span, from, backend.Runs(ctx, s.store.View()))
		if err == nil && !on {
			err = &lineage.SubjectError{
				Subject: "span", ID: found.Span.String(), Err: lineage.ErrInvalid, Detail: "it is not on the history of context " + found.Context.ID().String(),
			}
		}
		if err != nil {
			return err
		}
		if err := found.Context.MoveTo(ctx, found.Span, "rewind"); err != nil {
			return err
		}
		return s.moved(ctx, found, from)
	})
}
