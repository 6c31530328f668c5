package databases

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
)

type compareOptions struct {
	dsn   string
	limit int
}

func CompareCommand(a *app.App) *cobra.Command {
	o := &compareOptions{}
	c := &cobra.Command{
		Use:   "compare DATABASE",
		Short: "Compare a SQL database with the store projected to it",
		Long: `Compares every row that 'lineage project' wrote to a database with the store, and prints
the differences: rows that are missing, extra or different. Exits with 8 if any do. SQLite checks its file first.`,
		Example: `  lineage project sqlite:chats.db && lineage compare sqlite:chats.db`,
		Args:    cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.dsn = args[0]
			if err := app.NeedDSN(o.dsn); err != nil {
				return err
			}
			return a.Open(ctx, app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore) error {
				return app.OnDB(ctx, o.dsn, sqladapter.KeepTables, func(db *sqladapter.DB) error { return runCompare(ctx, s, db, o) })
			})
		}),
	}
	c.Flags().IntVarP(&o.limit, "limit", "n", 0, "stop after this many differences")
	return c
}

func runCompare(ctx context.Context, s *app.OpenStore, db *sqladapter.DB, o *compareOptions) error {
	r := records.Compared{Database: app.Redact(o.dsn), Complete: true}
	line := s.Progress("comparing", func(n int64) string { return amount.Plural(n, "thread") })
	for d, err := range project.Compare(ctx, db, s.Store, project.CompareOptions{Progress: func(done, total int) {
		line.Show(int64(done), int64(total))
	}}) {
		line.Done()
		if err != nil {
			return app.DatabaseHint(err)
		}
		if o.limit > 0 && r.Differences == o.limit {
			r.Complete = false
			break
		}
		r.Differences++
		r := &records.Difference{Kind: string(d.Kind), Table: d.Table, ID: d.ID, Columns: d.Columns}
		if err := s.Print(r, "%s\n", screen.Line(d.String())); err != nil {
			return err
		}
	}
	line.Done()
	text := r.Database + " agrees with the store"
	if r.Differences > 0 {
		text = amount.Plural(r.Differences, "difference") + " in " + r.Database
	}
	if err := s.Print(&r, "%s\n", text); err != nil {
		return err
	}
	if r.Differences > 0 {
		return app.ErrDiffers
	}
	return nil
}
