package sources

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/records"
)

type bundleImportOptions struct{ file, onConflict string }

func bundleImportCommand(a *app.App) *cobra.Command {
	o := &bundleImportOptions{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a bundle into a store",
		Long: `Adds the threads of a bundle to a store. Every byte is checked before anything is added. Existing
messages do not change, and importing again adds nothing. A context that has advanced both here and
in the bundle does not change, and the other becomes another branch, unless --on-conflict is given.
A store that is named by --store is created if it does not exist.`,
		Example: `  lineage bundle create lisbon.bundle && lineage bundle import lisbon.bundle --store copy.lineage`,
		Args:    cobra.ExactArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.file = args[0]
			return runBundleImport(ctx, a, o)
		}),
	}
	c.Flags().StringVar(&o.onConflict, "on-conflict", "keep-both", "keep-both, take-theirs or fail")
	return c
}

func runBundleImport(ctx context.Context, a *app.App, o *bundleImportOptions) error {
	conflict, err := bundle.ParseOnConflict(o.onConflict)
	if err != nil {
		return app.Usagef("--on-conflict %s", err)
	}
	in, err := a.Input(ctx, o.file)
	if err != nil {
		return err
	}
	defer in.Close()
	return a.Open(ctx, a.CreateIfNamed(), func(ctx context.Context, s *app.OpenStore) error {
		line := s.Progress("importing", amount.Bytes)
		report, err := bundle.Import(ctx, s.Store, in, bundle.ImportOptions{OnConflict: conflict, Progress: line.Show})
		line.Done()
		var missing *bundle.MissingError
		if errors.As(err, &missing) {
			return app.Hint(err, "it was written against another store's inventory: write it against this one's, or whole")
		}
		var damage *lineage.CorruptError
		if errors.As(err, &damage) && damage.File == "bundle" {
			return app.Hint(err, "nothing was added; 'lineage bundle create' in the other store writes it again")
		}
		if err != nil {
			return err
		}
		if s.JSON {
			report.Conflicts = append([]bundle.Conflict{}, report.Conflicts...)
			return s.Emit(&records.Unbundled{ImportReport: report})
		}
		for _, c := range report.Conflicts {
			s.Printf("context %s was extended in both; theirs is %s\n", refs.Short(c.Context), refs.Short(c.Theirs))
		}
		s.Printf("added %s, %s, %s; %s advanced\n", amount.Plural(report.Threads, "thread"), amount.Plural(report.Contexts, "context"),
			amount.Plural(report.Spans, "message"), amount.Plural(report.Moved, "context"))
		return nil
	})
}
