package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/lineage"
)

func AsideCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "aside [TEXT]",
		Short: "Create a branch without switching to it",
		Long: `Creates a branch at the tip of the active one and does not switch to it: a place for a
question on the side. A text is its first own message.`,
		Example: `  lineage aside "What does alfacinha mean?"`,
		Args:    cobra.MaximumNArgs(1),
		RunE: a.On(app.Changing, func(ctx context.Context, s *app.OpenStore, args []string) error {
			return runAside(ctx, s, app.Arg(args, 0))
		}),
	}
}

func runAside(ctx context.Context, s *app.OpenStore, text string) error {
	t, err := s.NeedThread()
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
	b, err := threads.BranchOf(ctx, t, aside)
	return show.PrintBranch(s.App, b, "now on branch", err)
}
