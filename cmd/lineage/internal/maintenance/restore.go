package maintenance

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
)

func RestoreCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "restore BACKUP DIR",
		Short: "Restore and verify a backup",
		Long: `Copies a backup, or any store that no process has open, into a directory that is new or empty, and
checks every byte. A store that is there already is left alone.`,
		Example: `  lineage backup monday.lineage && lineage restore monday.lineage again.lineage`,
		Args:    cobra.ExactArgs(2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			return runRestore(ctx, a, args[0], args[1])
		}),
	}
}

func runRestore(ctx context.Context, a *app.App, from, dir string) error {
	line := a.Progress("restoring", amount.Bytes)
	report, err := lineage.Restore(ctx, from, dir, lineage.RestoreOptions{Progress: line.Show})
	line.Done()
	if errors.Is(err, lineage.ErrCorrupt) {
		return app.Hint(err, "nothing was restored; 'lineage verify --deep --store %s' lists what is damaged", from)
	}
	if err != nil {
		return app.NotWaited(err)
	}
	return copied(a, dir, report)
}
