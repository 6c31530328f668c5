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
)

func PackCommand(a *app.App) *cobra.Command {
	dense := false
	c := &cobra.Command{
		Use:   "pack",
		Short: "Compress a store",
		Long: `Compresses everything up to the latest commit. Every message stays readable by itself. It can be
interrupted: what was packed so far stays so. --dense also compresses packs again that are not dense.
Neighboring packs are merged, so that few are left, each several times larger than the next.`,
		Example: `  lineage pack
  lineage pack --dense --json`,
		Args: cobra.NoArgs,
		RunE: a.On(app.NoThread, func(ctx context.Context, s *app.OpenStore, _ []string) error { return runPack(ctx, s, dense) }),
	}
	c.Flags().BoolVar(&dense, "dense", false, "compress as much as possible, which takes longer")
	return c
}

func runPack(ctx context.Context, s *app.OpenStore, dense bool) error {
	line := s.Progress("packing", amount.Bytes)
	report, err := s.Store.Pack(ctx, lineage.PackOptions{All: true, Dense: dense, Progress: line.Show})
	line.Done()
	if errors.Is(err, errors.ErrUnsupported) {
		return app.Hint(fmt.Errorf("pack: the store is on a server: %w", err), "it is compressed as it is written; VACUUM gives room back to the system")
	}
	if err != nil {
		return err
	}
	result := "nothing to pack"
	if report.Files > 0 {
		result = fmt.Sprintf("packed %s into %s", amount.Plural(report.Commits, "commit"), amount.Plural(report.Files, "pack"))
	}
	gain := ""
	if report.Fast > 0 {
		gain = fmt.Sprintf("%s are in packs that are not dense; --dense usually saves a third to a half of that,\nand takes about 2 s for each MiB of text\n", amount.Bytes(report.Fast))
	}
	return s.Print(&records.Packed{PackReport: report}, "%s: journal and index take %s, %s before\n%s", result, amount.Bytes(report.After), amount.Bytes(report.Before), gain)
}
