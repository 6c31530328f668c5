package maintenance

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func RepairCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "repair",
		Short: "Rebuild the index from the journal",
		Long: `Rebuilds the index from the journal. The old index is kept beside it
as index.bolt.before-repair until the next repair, or until gc removes something. Damage to the journal itself cannot be
repaired, and then the index does not change: 'lineage verify' shows what is damaged. Without a backup
'lineage salvage' copies the readable part to a new store.`,
		Example: `  lineage repair`,
		Args:    cobra.NoArgs,
		RunE:    a.Does(func(ctx context.Context, _ []string) error { return runRepair(ctx, a) }),
	}
}

func runRepair(ctx context.Context, a *app.App) error {
	dir, err := a.FindStore(app.MustExist)
	if err != nil {
		return err
	}
	if app.IsServed(dir) {
		return app.Hint(app.Usagef("%s: a store on a server has no index to repair", app.Redact(dir)), "'lineage verify' checks it")
	}
	unlock, err := embedded.Lock(ctx, dir, a.Wait)
	if err != nil {
		return err
	}
	restore, err := setIndexAside(dir)
	if err = errors.Join(err, unlock()); err != nil {
		return err
	}
	store, err := a.OpenStore(ctx, dir, app.Changing, structure.StoreID{})
	if err != nil {
		return errors.Join(err, restore())
	}
	defer store.Close()
	head, err := store.View().Head(ctx)
	if err != nil {
		return err
	}
	if err := store.Sync(ctx); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	return a.Print(&records.Repaired{Store: dir, Commits: head.Number}, "rebuilt the index from %s\n", amount.Plural(head.Number, "commit"))
}

// setIndexAside renames the index. It is kept under the new name until the next repair. restore undoes that: if the
// journal cannot be read, the index may be the only record of the store's contents.
func setIndexAside(dir string) (restore func() error, err error) {
	index := filepath.Join(dir, "index.bolt")
	sums, aside := index+".sums", filepath.Join(dir, embedded.IndexBeforeRepair)
	sumsFile, err := vfs.ReadFile(sums, 64<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Rename(index, aside); errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	} else if err != nil {
		return nil, err
	}
	if err := os.Remove(sums); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return func() error {
		err := os.Remove(sums)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if sumsFile != nil {
			err = os.WriteFile(sums, sumsFile, 0o600)
		}
		return errors.Join(err, os.Rename(aside, index))
	}, nil
}
