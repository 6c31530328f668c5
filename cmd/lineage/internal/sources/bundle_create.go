package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/records"
)

type bundleCreateOptions struct {
	file    string
	threads []string
	all     bool
	against string
}

func bundleCreateCommand(a *app.App) *cobra.Command {
	o := &bundleCreateOptions{}
	c := &cobra.Command{
		Use:   "create FILE [THREAD]...",
		Short: "Write threads into a bundle",
		Long: `Writes the current thread, those named, or with --all the whole store into a bundle. With --against
everything in the inventory of the other store is left out. FILE - is standard output.`,
		Example: `  lineage bundle create lisbon.bundle lisbon
  lineage bundle create everything.bundle --all --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.file, o.threads = args[0], args[1:]
			if o.all && len(o.threads) > 0 {
				return app.Usagef("--all writes every thread: name none")
			}
			return a.Open(ctx, app.Reading, func(ctx context.Context, s *app.OpenStore) error { return runBundleCreate(ctx, s, o) })
		}),
	}
	c.Flags().BoolVar(&o.all, "all", false, "write the whole store")
	c.Flags().StringVar(&o.against, "against", "", "the file with the inventory of the other store")
	return c
}

// inventoryFailure explains why a file cannot be used as an inventory. Damage to it is not damage to the store.
func inventoryFailure(file string, err error) error {
	const again = "'lineage bundle inventory FILE' in the other store writes one"
	var damage *lineage.CorruptError
	switch {
	case errors.Is(err, bundle.ErrNoInventory):
		return app.Hint(app.Usagef("%s is not an inventory", file), again)
	case errors.As(err, &damage):
		return app.Hint(&lineage.CorruptError{File: "inventory " + file, Offset: damage.Offset, What: damage.What}, again)
	}
	return fmt.Errorf("inventory %s: %w", file, err)
}

func runBundleCreate(ctx context.Context, s *app.OpenStore, o *bundleCreateOptions) error {
	line := s.Progress("writing", func(n int64) string { return amount.Plural(n, "message") })
	options := bundle.WriteOptions{Progress: func(spans uint64) { line.Show(int64(spans), 0) }}
	if o.against != "" {
		f, err := os.Open(o.against)
		if err != nil {
			return err
		}
		defer f.Close()
		options.Have = bundle.NewInventory()
		if _, err := options.Have.ReadFrom(f); err != nil {
			return inventoryFailure(o.against, err)
		}
	}
	if !o.all {
		if len(o.threads) == 0 {
			o.threads = []string{""}
		}
		for _, name := range o.threads {
			t, err := threads.ThreadNamed(ctx, s, name)
			if err != nil {
				return err
			}
			options.Threads = append(options.Threads, t.ID())
		}
	}
	var report bundle.WriteReport
	err := writeBinary(s.App, o.file, func(w io.Writer) (err error) {
		report, err = bundle.Write(ctx, s.Store, w, options)
		return err
	})
	line.Done()
	if err != nil || o.file == app.StdoutName {
		return err
	}
	return s.Print(&records.Bundled{File: o.file, WriteReport: report}, "wrote %s: %s, %s, %s\n", o.file, amount.Plural(report.Threads, "thread"),
		amount.Plural(report.Spans, "message"), amount.Bytes(report.Bytes))
}
