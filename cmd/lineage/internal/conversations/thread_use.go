package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func threadUseCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "use THREAD",
		Short:   "Make a thread the current one",
		Example: `  lineage thread use lisbon`,
		Args:    cobra.ExactArgs(1),
		RunE:    a.On(app.NoThread, func(ctx context.Context, s *app.OpenStore, args []string) error { return runThreadUse(ctx, s, args[0]) }),
	}
}

func runThreadUse(ctx context.Context, s *app.OpenStore, name string) error {
	t, err := s.Refs.Thread(ctx, name)
	if err != nil {
		return err
	}
	if err := s.UseThread(t.ID()); err != nil {
		return err
	}
	s.Thread = t
	r, err := threads.ThreadRecord(ctx, s, t)
	if err != nil {
		return err
	}
	title, err := threads.InStore{OpenStore: s}.TitleOf(ctx, r)
	if err != nil {
		return err
	}
	return s.Print(r, "now on %s, branch %s\n", title, r.Branch)
}
