package sources

import (
	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

func BundleCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "bundle",
		Short: "Copy threads between stores without loss",
		Long: `Copies threads between stores. A bundle is a file that carries threads, or a whole store, to another store and loses nothing: ids, times,
branches, checkpoints, summaries. Written against an inventory of the other store, it leaves out
everything that store has.`,
		Example: `  lineage bundle create lisbon.bundle
  lineage bundle import lisbon.bundle --store copy.lineage`,
		Args: app.KnownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(bundleCreateCommand(a), bundleImportCommand(a), bundleInventoryCommand(a))
	return c
}
