package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type deleteOptions struct {
	name       string
	checkpoint bool
	yes        bool
}

func deleteCommand(a *app) *cobra.Command {
	o := &deleteOptions{}
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a branch, checkpoint or context",
		Long: `Deletes a branch with its context, a context that has no name, or a checkpoint. Messages
that other histories share stay. It shows what it would delete and asks first, unless --yes is given; it cannot be
undone. 'lineage thread delete' deletes a whole thread, and 'lineage erase' bytes.`,
		Example: `  lineage delete cheap --yes
  lineage delete start --checkpoint --yes`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = args[0]
			return destroy(ctx, a, o.yes, changing, a.openThreads, func(ctx context.Context, in threads) (*destruction, error) {
				return in.nameToDelete(ctx, o)
			})
		}),
	}
	c.Flags().BoolVar(&o.checkpoint, "checkpoint", false, "the checkpoint of that name, where a branch has it too")
	yesFlag(c, &o.yes)
	return c
}

// nameToDelete implements threads.
func (s *session) nameToDelete(ctx context.Context, o *deleteOptions) (*destruction, error) {
	if o.checkpoint {
		t, err := s.needThread()
		if err != nil {
			return nil, err
		}
		return s.checkpointToDelete(ctx, t, o.name)
	}
	found, err := s.refs.Find(ctx, o.name)
	if err != nil {
		return nil, err
	}
	home, err := s.home(found)
	if err != nil {
		return nil, err
	}
	switch {
	case found.Moved:
		return nil, &refs.KindError{Text: o.name, Want: "a branch, checkpoint or context"}
	case found.Checkpoint != "":
		return s.checkpointToDelete(ctx, home, found.Checkpoint)
	case found.Context == nil:
		return nil, hint(&refs.KindError{Text: o.name, Want: "a branch, checkpoint or context"},
			"messages are never changed; 'lineage rewind' leaves some behind and 'lineage erase' removes their bytes")
	}
	length, err := found.Context.Len(ctx)
	if err != nil {
		return nil, err
	}
	history := "with " + screen.Plural(length, "message") + ", but for those that other histories share"
	if found.Branch == "" {
		return s.deletion(fmt.Sprintf("delete context %s %s", refs.Short(found.Context.ID()), history),
			&records.Deleted{What: "context", ID: found.Context.ID().String()}, found.Context.Delete), nil
	}
	title, err := s.quotedTitle(ctx, home)
	return s.deletion(fmt.Sprintf("delete branch %q of thread %s %s", found.Branch, title, history),
		&records.Deleted{What: "branch", ID: found.Context.ID().String(), Name: found.Branch},
		func(ctx context.Context) error { return home.DeleteBranch(ctx, found.Branch) }), err
}

func (s *session) checkpointToDelete(ctx context.Context, t *lineage.Thread, name string) (*destruction, error) {
	c, err := t.Checkpoint(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", name, err)
	}
	title, err := s.quotedTitle(ctx, t)
	return s.deletion(fmt.Sprintf("delete checkpoint %q of thread %s", name, title),
		&records.Deleted{What: "checkpoint", ID: c.ID.String(), Name: name},
		func(ctx context.Context) error { return t.DeleteCheckpoint(ctx, name) }), err
}

// quotedTitle returns how a question names a thread.
func (s *session) quotedTitle(ctx context.Context, t *lineage.Thread) (string, error) {
	info, err := t.Info(ctx)
	if err != nil {
		return "", err
	}
	title, err := s.shownTitle(ctx, info)
	return fmt.Sprintf("%q (%s)", title, refs.Short(t.ID())), err
}
