package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
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

func bundleCreateCommand(a *app) *cobra.Command {
	o := &bundleCreateOptions{}
	c := &cobra.Command{
		Use:   "create FILE [THREAD]...",
		Short: "Write threads into a bundle",
		Long: `Writes the current thread, those named, or with --all the whole store into a bundle. With --against
everything in the inventory of the other store is left out. FILE - is standard output.`,
		Example: `  lineage bundle create lisbon.bundle lisbon
  lineage bundle create everything.bundle --all --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.file, o.threads = args[0], args[1:]
			if o.all && len(o.threads) > 0 {
				return usagef("--all writes every thread: name none")
			}
			return a.open(ctx, reading, func(ctx context.Context, s *session) error { return runBundleCreate(ctx, s, o) })
		}),
	}
	c.Flags().BoolVar(&o.all, "all", false, "write the whole store")
	c.Flags().StringVar(&o.against, "against", "", "the file with the inventory of the other store")
	return c
}

// inventoryFailure explains why a file cannot be used as an inventory. Its damage is not that of the
// store.
func inventoryFailure(file string, err error) error {
	const again = "'lineage bundle inventory FILE' in the other store writes one"
	var damage *lineage.CorruptError
	switch {
	case errors.Is(err, bundle.ErrNoInventory):
		return hint(usagef("%s is not an inventory", file), again)
	case errors.As(err, &damage):
		return hint(&lineage.CorruptError{File: "inventory " + file, Offset: damage.Offset, What: damage.What}, again)
	}
	return fmt.Errorf("inventory %s: %w", file, err)
}

func runBundleCreate(ctx context.Context, s *session, o *bundleCreateOptions) error {
	line := s.progress("writing", func(n int64) string { return screen.Plural(n, "message") })
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
			t, err := s.threadNamed(ctx, name)
			if err != nil {
				return err
			}
			options.Threads = append(options.Threads, t.ID())
		}
	}
	var report bundle.WriteReport
	err := s.writeBinary(o.file, func(w io.Writer) (err error) {
		report, err = bundle.Write(ctx, s.store, w, options)
		return err
	})
	line.Done()
	if err != nil || o.file == stdoutName {
		return err
	}
	return s.print(&records.Bundled{File: o.file, WriteReport: report}, "wrote %s: %s, %s, %s\n", o.file, screen.Plural(report.Threads, "thread"),
		screen.Plural(report.Spans, "message"), screen.Bytes(report.Bytes))
}
