package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func InitCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a store",
		Long: `Creates an empty store: .lineage in the current folder, or the directory named. Commands
run in the folder or below it find it from there. A URL of
a PostgreSQL database with ?store=NAME creates one there.`,
		Example: `  lineage init
  lineage init agents.lineage`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			return runInit(ctx, a, cmp.Or(app.Arg(args, 0), a.NamedStore(), app.StoreDir))
		}),
	}
}

func runInit(ctx context.Context, a *app.App, named string) error {
	if app.IsDSN(named) {
		return app.Usagef("%s: a database is set up by the first thread or message in it", app.Redact(named))
	}
	if err := noStore(ctx, a, named); err != nil {
		return err
	}
	store, err := a.OpenStore(ctx, named, app.Create, structure.StoreID{})
	if err != nil {
		return err
	}
	if err := errors.Join(store.Sync(ctx), store.Close()); err != nil {
		return err
	}
	name := app.ShownStore(named)
	err = a.Print(&records.Init{Store: name}, "created an empty store in %s\n", name)
	a.Note("next: lineage follow   or   lineage import ARCHIVE   or   lineage append \"Hello.\"")
	return err
}

// noStore returns an error if a store or a file has the name already.
func noStore(ctx context.Context, a *app.App, named string) error {
	if !app.IsServed(named) {
		if err := app.NotAFile(named); err != nil || !app.IsStore(named) {
			return err
		}
		return app.Hint(fmt.Errorf("store %s: %w", named, lineage.ErrExists), "'lineage info --store %s' shows it", named)
	}
	store, err := a.OpenStore(ctx, named, app.Changing, structure.StoreID{})
	if err == nil {
		return app.Hint(errors.Join(fmt.Errorf("store %s: %w", app.Redact(named), lineage.ErrExists), store.Close()), "'lineage info' shows it")
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}
