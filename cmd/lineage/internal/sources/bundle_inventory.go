package sources

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/records"
)

func bundleInventoryCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "inventory FILE",
		Short: "List the contents of a store, to leave them out of a bundle",
		Long:  `Writes a list of the contents of the store, for 'lineage bundle create --against' in another store. FILE - is standard output.`,
		Example: `  lineage bundle inventory here.inventory
  lineage bundle inventory here.inventory
  lineage bundle create new.bundle --against here.inventory --all`,
		Args: cobra.ExactArgs(1),
		RunE: a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore, args []string) error {
			return runBundleInventory(ctx, s, args[0])
		}),
	}
}

func runBundleInventory(ctx context.Context, s *app.OpenStore, file string) error {
	inventory, err := bundle.Take(ctx, s.Store)
	if err != nil {
		return err
	}
	r := records.Inventory{File: file}
	err = writeBinary(s.App, file, func(w io.Writer) (err error) {
		r.Bytes, err = inventory.WriteTo(w)
		return err
	})
	if err != nil || file == app.StdoutName {
		return err
	}
	return s.Print(&r, "wrote %s, %s\n", file, amount.Bytes(r.Bytes))
}
