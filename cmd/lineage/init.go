package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

type initOptions struct{ dir string }

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
			return runInit(ctx, a, &initOptions{dir: arg(args, 0)})
		}),
	}
}

// initRecord is a store that was created.
type initRecord struct {
	Store string `json:"store"`
}

func (*initRecord) recordType() string { return "init" }

func runInit(ctx context.Context, a *app, o *initOptions) error {
	dir := o.dir
	for _, named := range []string{a.store, a.getenv("LINEAGE_STORE"), storeDir} {
		if dir == "" {
			dir = named
		}
	}
	if isDSN(dir) {
		return usagef("%s: a database is set up by the first thread or message in it", redact(dir))
	}
	if isServed(dir) {
		return initServed(ctx, a, dir)
	}
	if err := notAFile(dir); err != nil {
		return err
	}
	if isStore(dir) {
		return hint(fmt.Errorf("store %s: %w", dir, lineage.ErrExists), "'lineage info --store %s' shows it", dir)
	}
	store, err := a.openStore(ctx, dir, create, structure.StoreID{})
	if err != nil {
		return err
	}
	if err := errors.Join(store.Sync(ctx), store.Close()); err != nil {
		return err
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return a.madeStore(dir)
}

// madeStore reports a store that was created.
func (a *app) madeStore(name string) error {
	err := a.print(&initRecord{Store: name}, "created an empty store in %s\n", name)
	a.note("next: lineage append \"Hello.\"   or   lineage import ARCHIVE")
	return err
}

// initServed makes a store on a server.
func initServed(ctx context.Context, a *app, named string) error {
	store, err := a.openStore(ctx, named, changing, structure.StoreID{})
	if err == nil {
		return hint(errors.Join(fmt.Errorf("store %s: %w", redact(named), lineage.ErrExists), store.Close()), "'lineage info' shows it")
	}
	if !errors.Is(err, lineage.ErrNotFound) {
		return err
	}
	if store, err = a.openStore(ctx, named, create, structure.StoreID{}); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	return a.madeStore(redact(named))
}
