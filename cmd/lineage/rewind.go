package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func rewindCommand(a *app) *cobra.Command {
	inPlace := false
	c := &cobra.Command{
		Use:   "rewind POSITION",
		Short: "Go back to an earlier message",
		Long: `Creates a branch at an earlier message and switches to it; the later messages stay on the branch
that has them. With --in-place the branch itself is moved back instead, which 'lineage undo'
undoes.`,
		Example: `  lineage rewind @{2}
  lineage rewind main:1 --json
  lineage rewind cheap~1 --in-place`,
		Args: cobra.ExactArgs(1),
		RunE: a.onThreads(changing, func(ctx context.Context, in threads, args []string) error {
			if inPlace {
				return in.rewindInPlace(ctx, args[0])
			}
			b, err := in.rewind(ctx, args[0])
			return a.printBranch(b, "now on branch", err)
		}),
	}
	c.Flags().BoolVar(&inPlace, "in-place", false, "move the branch or context itself")
	return c
}

// rewind implements threads. The branch has an automatic name.
func (s inStore) rewind(ctx context.Context, to string) (*records.Branch, error) {
	found, err := s.refs.Find(ctx, to)
	if err != nil {
		return nil, err
	}
	home, err := s.home(found)
	if err != nil {
		return nil, err
	}
	created, err := home.CreateBranch(ctx, "", lineage.BranchOptions{At: found.Span, Empty: found.Span.IsZero(), Switch: true})
	if err != nil {
		return nil, err
	}
	return branchOf(ctx, home, created)
}

// rewindInPlace implements threads.
func (s inStore) rewindInPlace(ctx context.Context, to string) error {
	found, err := s.refs.Find(ctx, to)
	if err != nil {
		return err
	}
	of, err := s.contextOf(ctx, found)
	if err != nil {
		return err
	}
	from, err := of.Context.Tip(ctx)
	if err != nil {
		return err
	}
	on, err := structure.IsAncestor(found.Span, from, backend.Runs(ctx, s.store.View()))
	if err != nil {
		return err
	}
	if !on {
		return &lineage.SubjectError{
			Subject: "span", ID: found.Span.String(), Err: lineage.ErrInvalid, Detail: "it is not on the history of context " + of.Context.ID().String(),
		}
	}
	if err := of.Context.MoveTo(ctx, found.Span, "rewind"); err != nil {
		return err
	}
	return s.moved(ctx, of, from)
}
