package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func RenameCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rename BRANCH NAME",
		Short:   "Rename a branch",
		Example: `  lineage rename cheap budget`,
		Args:    cobra.ExactArgs(2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			if err := app.NewName(args[1]); err != nil {
				return err
			}
			return a.Open(ctx, app.Changing, func(ctx context.Context, s *app.OpenStore) error { return runRename(ctx, s, args[0], args[1]) })
		}),
	}
}

func runRename(ctx context.Context, s *app.OpenStore, name, newName string) error {
	found, home, err := threads.NamedBranch(ctx, s, name)
	if err != nil {
		return err
	}
	if err := home.NameBranch(ctx, newName, found.Context); err != nil {
		return err
	}
	b, err := threads.BranchOf(ctx, home, found.Context)
	return show.PrintBranch(s.App, b, "now on branch", err)
}
