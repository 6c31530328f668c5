package maintenance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
)

type gcOptions struct {
	yes        bool
	dryRun     bool
	keepReflog time.Duration
	keepUnused time.Duration
}

func GcCommand(a *app.App) *cobra.Command {
	o := &gcOptions{}
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove unused data from the disk",
		Long: `Removes what is left of deleted threads and contexts, messages that no context, checkpoint or recent move
leads to, what 'lineage follow' keeps of the session files of deleted threads, and the bytes of erased content, also from the files on disk. It can be interrupted, and continues
the next time. It shows what would be removed and asks first, unless --yes is given; --dry-run only shows it.

What was removed is removed from the search index, too. Files of the store that may contain removed data are removed: the index
from before a repair, the bytes that recovery set aside, and a search index from which it cannot be removed. Backups and other copies, bundles, exports and projections in databases are not
changed. Of a store on a server, data is removed from the log; dead rows, the write-ahead log, standbys and backups of the server
keep it until they are vacuumed or expire. Former titles and metadata of existing threads stay in the history of the store.`,
		Example: `  lineage gc --dry-run
  lineage gc --keep-reflog 24h --yes --json`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(ctx context.Context, _ []string) error {
			if o.keepReflog < 0 || o.keepUnused < 0 {
				return app.Usagef("--keep-reflog and --keep-unused: a time is not negative")
			}
			if o.dryRun {
				return a.Open(ctx, app.Reading|app.NoThread, func(ctx context.Context, s *app.OpenStore) error { return runGC(ctx, s, o) })
			}
			return app.Destroy(ctx, a, o.yes, app.NoThread, a.Open, func(ctx context.Context, s *app.OpenStore) (*app.Destruction, error) { return collection(ctx, s, o) })
		}),
	}
	app.YesFlag(c, &o.yes)
	f := c.Flags()
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "only show what would be removed")
	f.DurationVar(&o.keepReflog, "keep-reflog", backend.DefaultKeepReflog, "how long reflog entries keep old history alive; 0 keeps nothing")
	f.DurationVar(&o.keepUnused, "keep-unused", backend.DefaultKeepUnused, "how long content that nothing has used yet is kept")
	return c
}

// kept converts a retention time to the form of lineage.CollectOptions, where 0 means the default and a negative time
// means none.
func kept(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// collection returns the Destruction of a collection. It is described only if a person is asked, because that needs a
// dry run.
func collection(ctx context.Context, s *app.OpenStore, o *gcOptions) (*app.Destruction, error) {
	d := &app.Destruction{Do: func(ctx context.Context) error { return runGC(ctx, s, o) }}
	if o.yes {
		return d, nil
	}
	const dryRun = true
	report, err := collect(ctx, s, o, dryRun)
	if report.Records+report.Erased > 0 {
		d.What = "remove " + collectedText(&report)
	}
	return d, err
}

func collect(ctx context.Context, s *app.OpenStore, o *gcOptions, dryRun bool) (backend.CollectReport, error) {
	if !dryRun {
		if _, err := follow.ForgetDeleted(ctx, s.Store); err != nil {
			return backend.CollectReport{}, err
		}
	}
	line := s.Progress("collecting", amount.Bytes)
	defer line.Done()
	return s.Store.Collect(ctx, lineage.CollectOptions{
		DryRun: dryRun, KeepReflog: kept(o.keepReflog), KeepUnused: kept(o.keepUnused), Progress: line.Show,
	})
}

func collectedText(r *backend.CollectReport) string {
	return fmt.Sprintf("%s in %s: %s, %s", amount.Bytes(r.Bytes), amount.Plural(r.Records, "record"),
		amount.Plural(r.Spans, "message"), amount.Plural(r.Blocks, "content"))
}

func runGC(ctx context.Context, s *app.OpenStore, o *gcOptions) error {
	report, err := collect(ctx, s, o, o.dryRun)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.Emit(&records.Collected{DryRun: o.dryRun, CollectReport: report})
	}
	verb := "removed"
	if o.dryRun {
		verb = "would remove"
	}
	if report.Records+report.Erased == 0 {
		s.Printf("nothing to remove\n")
	} else {
		s.Printf("%s %s\n", verb, collectedText(&report))
	}
	if !o.dryRun {
		s.Printf("%s on disk, %s before\n", amount.Bytes(report.After), amount.Bytes(report.Before))
	}
	for _, name := range report.Removed {
		s.Printf("removed %s\n", name)
	}
	if len(report.Elsewhere) > 0 {
		s.Printf("not touched: %s\n", strings.Join(report.Elsewhere, "; "))
	}
	return nil
}
