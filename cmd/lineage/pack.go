package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

type packOptions struct{ dense bool }

func packCommand(a *app) *cobra.Command {
	o := &packOptions{}
	c := &cobra.Command{
		Use:   "pack",
		Short: "Compress a store",
		Long: `Compresses everything up to the latest commit. Every message stays readable by itself. It can be
interrupted: what was packed so far stays so.`,
		Example: `  lineage pack
  lineage pack --dense --json`,
		Args: cobra.NoArgs,
		RunE: a.on(noThread, func(ctx context.Context, s *session, _ []string) error { return runPack(ctx, s, o) }),
	}
	c.Flags().BoolVar(&o.dense, "dense", false, "compress as much as possible, which takes longer")
	return c
}

// packedRecord is what packing did.
type packedRecord struct {
	// Files is how many files were written, and Commits how many commits they hold.
	Files   int    `json:"files"`
	Commits uint64 `json:"commits"`
	// BytesBefore and BytesAfter are the sizes of journal and index.
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
}

func (*packedRecord) recordType() string { return "packed" }

func runPack(ctx context.Context, s *session, o *packOptions) error {
	line := s.progress("packing", screen.Bytes)
	report, err := s.store.Pack(ctx, lineage.PackOptions{All: true, Dense: o.dense, Progress: line.Show})
	line.Done()
	if err != nil {
		return err
	}
	r := &packedRecord{Files: report.Files, Commits: report.Commits, BytesBefore: report.Before, BytesAfter: report.After}
	return s.print(r, "packed %s: journal and index take %s, %s before\n", screen.Plural(int64(report.Commits), "commit"), screen.Bytes(report.After), screen.Bytes(report.Before))
}
