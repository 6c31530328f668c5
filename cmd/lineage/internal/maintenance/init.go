package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func InitCommand(a *app.App) *cobra.Command {
	distribute := false
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a store",
		Long: `Creates an empty store: .lineage in the current folder, or the directory named. Commands
run in the folder or below it find it from there. A URL of
a PostgreSQL database with ?store=NAME creates one there. With
--distribute its tables are distributed over servers by store, which
needs the extension Citus in the database; tables that are there
already are distributed, too, with what they have.`,
		Example: `  lineage init
  lineage init agents.lineage`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			return runInit(ctx, a, cmp.Or(app.Arg(args, 0), a.NamedStore(), app.StoreDir), distribute)
		}),
	}
	c.Flags().BoolVar(&distribute, "distribute", false, "distribute the tables of a PostgreSQL database over servers")
	return c
}

func runInit(ctx context.Context, a *app.App, named string, distribute bool) error {
	mode := app.Create
	if distribute {
		if mode |= app.Distribute; !app.IsServed(named) {
			return app.Usagef("--distribute is for a store on PostgreSQL, and not for %s", app.Redact(named))
		}
	}
	if app.IsDSN(named) {
		return app.Usagef("%s: a database is set up by the first thread or message in it", app.Redact(named))
	}
	if !distribute {
		if err := noStore(ctx, a, named); err != nil {
			return err
		}
	}
	id := structure.StoreID(uuid.New())
	store, err := a.OpenStore(ctx, named, mode, id)
	if err != nil {
		return err
	}
	if err := errors.Join(store.Sync(ctx), store.Close()); err != nil {
		return err
	}
	name := app.ShownStore(named)
	if store.ID() != id {
		return a.Print(&records.Init{Store: name, Existed: true}, "the tables of %s are distributed; the store was there\n", name)
	}
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
