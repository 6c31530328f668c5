package maintenance

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
)

func BackupCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR",
		Short: "Back up a store",
		Long: `Copies the store, as of one commit, into a directory that is new or empty. The copy is a store
itself, and gets its name only when it is complete. 'lineage restore' restores it.`,
		Example: `  lineage backup monday.lineage`,
		Args:    cobra.ExactArgs(1),
		RunE:    a.On(app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore, args []string) error { return runBackup(ctx, s, args[0]) }),
	}
}

func runBackup(ctx context.Context, s *app.OpenStore, dir string) error {
	line := s.Progress("copying", amount.Bytes)
	report, err := s.Store.Backup(ctx, dir, lineage.BackupOptions{Progress: line.Show})
	line.Done()
	if errors.Is(err, errors.ErrUnsupported) {
		return app.Hint(fmt.Errorf("backup: the store is on a server: %w", err), "back up its database, or 'lineage copy' it into a directory")
	}
	if err != nil {
		return err
	}
	return copied(s.App, dir, report)
}

func copied(a *app.App, dir string, report backend.BackupReport) error {
	dir = app.ShownStore(dir)
	return a.Print(&records.Copied{Store: dir, BackupReport: report}, "copied %s, %s, into %s\n", amount.Plural(report.Commit, "commit"), amount.Bytes(report.Bytes), dir)
}
