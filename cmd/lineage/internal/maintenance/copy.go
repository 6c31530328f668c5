package maintenance

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

func CopyCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a store commit by commit, also to or from a server",
		Long: `Copies the commits of a store into another, with the same ids, numbers and digests. Each is a
directory or the URL of a PostgreSQL database with ?store=NAME. The other store is created, is empty, or
is an earlier copy, which the command continues after an interruption or when the first store has grown.
It copies the commits that are there when it begins.

Content that was erased is not copied, except for large bodies before 'lineage gc'. After 'lineage gc' in
the copy it cannot be continued.`,
		Example: `  lineage copy .lineage copy.lineage`,
		Args:    cobra.ExactArgs(2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			return runCopy(ctx, a, args[0], args[1])
		}),
	}
}

func runCopy(ctx context.Context, a *app.App, source, target string) (err error) {
	named, err := app.StoreNamed(source, app.MustExist)
	if err != nil {
		return err
	}
	from, err := a.OpenStore(ctx, named, app.Reading, structure.StoreID{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if named, err = app.StoreNamed(target, app.MayBeNew); err != nil {
		return err
	}
	to, err := a.OpenStore(ctx, named, app.Create, from.ID())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	named = app.ShownStore(named)
	line := a.Progress("copying", amount.Count)
	report, err := lineage.Copy(ctx, from, to, lineage.CopyOptions{Progress: line.Show})
	line.Done()
	switch {
	case errors.Is(err, lineage.ErrCollected):
		return app.Hint(fmt.Errorf("store %s: %w", named, err), "copy into another store")
	case errors.Is(err, lineage.ErrDiverged):
		return app.Hint(fmt.Errorf("store %s %w, and is no beginning of a copy: %w", named, lineage.ErrExists, err), "copy into a store that does not exist, or is empty")
	case errors.Is(err, errors.ErrUnsupported):
		return app.Hint(fmt.Errorf("store %s: %w", named, err), "another process has it open: end that process first")
	case err != nil:
		return err
	}
	return a.Print(&records.StoreCopied{Store: named, CopyReport: report},
		"copied %s into %s, which has %s\n", amount.Plural(report.Added, "commit"), named, amount.Plural(report.Commit, "commit"))
}
