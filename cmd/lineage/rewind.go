package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
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

// rewind implements threads.
func (s *session) rewind(ctx context.Context, to string) (*branchRecord, error) {
	found, err := s.refs.Find(ctx, to)
	if err != nil {
		return nil, err
	}
	home, err := s.home(found)
	if err != nil {
		return nil, err
	}
	return switchToNew(ctx, home, found.Span)
}

// switchToNew creates a branch with an automatic name at a position and switches to it.
func switchToNew(ctx context.Context, t *lineage.Thread, at lineage.SpanRef) (*branchRecord, error) {
	created, err := t.CreateBranch(ctx, "", lineage.BranchOptions{At: at, Empty: at.IsZero(), Switch: true})
	if err != nil {
		return nil, err
	}
	return branchOfContext(ctx, t, created)
}

// branchOfContext returns the record of the branch that a context is.
func branchOfContext(ctx context.Context, t *lineage.Thread, c *lineage.Context) (*branchRecord, error) {
	info, err := c.Info(ctx)
	if err != nil {
		return nil, err
	}
	return branchOf(ctx, t, info.Branch)
}

// rewindInPlace implements threads.
func (s *session) rewindInPlace(ctx context.Context, to string) error {
	found, err := s.refs.Find(ctx, to)
	if err != nil {
		return err
	}
	of := found
	if found.Context == nil {
		home, err := s.home(found)
		if err != nil {
			return err
		}
		if of, err = refs.New(s.store, home).Context(ctx, ""); err != nil {
			return err
		}
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
