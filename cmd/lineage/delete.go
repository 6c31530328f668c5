package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

type deleteOptions struct {
	name       string
	checkpoint bool
}

func deleteCommand(a *app) *cobra.Command {
	o := &deleteOptions{}
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a branch, checkpoint or context",
		Long: `Deletes a branch with its context, a context that has no name, or a checkpoint. Messages
stay for whoever else has them; 'lineage chat delete' deletes a whole chat, and 'lineage erase' bytes.`,
		Example: `  lineage delete cheap
  lineage delete start --checkpoint`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = args[0]
			if a.dsn() != "" {
				return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.deleteNamed(ctx, o) })
			}
			return a.change(ctx, func(ctx context.Context, s *session) error { return runDelete(ctx, s, o) })
		}),
	}
	c.Flags().BoolVar(&o.checkpoint, "checkpoint", false, "the checkpoint of that name, where a branch has it too")
	return c
}

func runDelete(ctx context.Context, s *session, o *deleteOptions) error {
	if o.checkpoint {
		t, err := s.needChat()
		if err != nil {
			return err
		}
		return s.deleteCheckpoint(ctx, t, o.name)
	}
	found, err := s.refs.Find(ctx, o.name)
	if err != nil {
		return err
	}
	home, err := s.home(found)
	if err != nil {
		return err
	}
	switch {
	case found.Moved:
		return &refs.KindError{Text: o.name, Want: "a branch, checkpoint or context"}
	case found.Checkpoint != "":
		return s.deleteCheckpoint(ctx, home, found.Checkpoint)
	case found.Context == nil:
		return hint(&refs.KindError{Text: o.name, Want: "a branch, checkpoint or context"},
			"messages are never changed; 'lineage rewind' leaves some behind and 'lineage erase' removes their bytes")
	}
	s.nameBranch(ctx, found)
	if found.Branch != "" {
		if err := home.DeleteBranch(ctx, found.Branch); err != nil {
			return err
		}
		return s.deleted("branch", found.Context.ID().String(), found.Branch)
	}
	if err := found.Context.Delete(ctx); err != nil {
		return err
	}
	return s.deleted("context", found.Context.ID().String(), "")
}

func (s *session) deleteCheckpoint(ctx context.Context, t *lineage.Thread, name string) error {
	c, err := t.FindCheckpoint(ctx, name)
	if err != nil {
		return fmt.Errorf("checkpoint %q: %w", name, err)
	}
	if err := t.DeleteCheckpoint(ctx, name); err != nil {
		return err
	}
	return s.deleted("checkpoint", c.ID.String(), name)
}
