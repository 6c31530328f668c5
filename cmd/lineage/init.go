package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func initCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a store",
		Long: `Creates an empty store: .lineage in the current folder, or the directory named. Commands
run in the folder or below it find it from there. A URL of
a PostgreSQL database with ?store=NAME creates one there.`,
		Example: `  lineage init
  lineage init agents.lineage`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return runInit(ctx, a, cmp.Or(arg(args, 0), a.namedStore(), storeDir))
		}),
	}
}

func runInit(ctx context.Context, a *app, named string) error {
	if isDSN(named) {
		return usagef("%s: a database is set up by the first thread or message in it", redact(named))
	}
	if err := noStore(ctx, a, named); err != nil {
		return err
	}
	store, err := a.openStore(ctx, named, create, structure.StoreID{})
	if err != nil {
		return err
	}
	if err := errors.Join(store.Sync(ctx), store.Close()); err != nil {
		return err
	}
	name := shownStore(named)
	err = a.print(&records.Init{Store: name}, "created an empty store in %s\n", name)
	a.note("next: lineage append \"Hello.\"   or   lineage import ARCHIVE")
	return err
}

// noStore refuses a name that a store, or a file, has already.
func noStore(ctx context.Context, a *app, named string) error {
	if !isServed(named) {
		if err := notAFile(named); err != nil || !isStore(named) {
			return err
		}
		return hint(fmt.Errorf("store %s: %w", named, lineage.ErrExists), "'lineage info --store %s' shows it", named)
	}
	store, err := a.openStore(ctx, named, changing, structure.StoreID{})
	if err == nil {
		return hint(errors.Join(fmt.Errorf("store %s: %w", redact(named), lineage.ErrExists), store.Close()), "'lineage info' shows it")
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}
