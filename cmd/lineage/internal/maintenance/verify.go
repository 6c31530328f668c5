package maintenance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
)

func VerifyCommand(a *app.App) *cobra.Command {
	deep := false
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check a store for damage",
		Long: `Checks the checksums and numbers of all stored data; with --deep all content is hashed again,
every digest computed, the whole index compared with the journal, and each session file that
'lineage follow' has read put together and compared with its checksum. Prints what is damaged and what
repairs it, and exits with 6 if anything is damaged.`,
		Example: `  lineage verify
  lineage verify --deep --json`,
		Args: cobra.NoArgs,
		RunE: a.Does(func(ctx context.Context, _ []string) error {
			opened := false
			err := a.Open(ctx, app.Reading|app.NoThread|app.Damaged, func(ctx context.Context, s *app.OpenStore) error {
				opened = true
				return runVerify(ctx, s, deep)
			})
			if !opened && errors.Is(err, lineage.ErrCorrupt) {
				return app.Hint(err, "the store cannot be opened, not even to read: 'lineage restore' makes one of a backup, 'lineage salvage' of what is left")
			}
			return err
		}),
	}
	c.Flags().BoolVar(&deep, "deep", false, "check every byte")
	return c
}

func runVerify(ctx context.Context, s *app.OpenStore, deep bool) error {
	head, err := s.Store.View().Head(ctx)
	if err != nil {
		return err
	}
	r := records.Verified{Deep: deep, Commits: head.Number}
	// An unusable index was rebuilt for this command only. Damage to the journal is reported below, with its
	// position.
	rebuilt := s.Rebuilt
	if s.Store.Damage() != nil {
		rebuilt = nil
	}
	var repairs []string // repairs for the findings, each once
	found := func(f backend.Finding) error {
		repair := f.Repair
		if repair == backend.RebuildIndex {
			repair = "'lineage repair' rebuilds the index"
		}
		if repair != "" && !slices.Contains(repairs, repair) {
			repairs = append(repairs, repair)
		}
		return finding(s, f, &r)
	}
	for _, message := range rebuilt {
		f := backend.Finding{Subject: "index", Problem: message, Repair: backend.RebuildIndex}
		if err := found(f); err != nil {
			return err
		}
	}
	line := s.Progress("verifying", amount.Bytes)
	for f, err := range s.Store.Verify(ctx, lineage.VerifyOptions{Deep: deep, Progress: func(done, total int64) {
		r.CheckedBytes = max(r.CheckedBytes, done)
		line.Show(done, total)
	}}) {
		line.Done()
		if err != nil {
			return err
		}
		if err := found(f); err != nil {
			return err
		}
	}
	line.Done()
	if deep && r.Findings == 0 {
		if err := verifySources(ctx, s, found); err != nil {
			return err
		}
	}
	if r.OK = r.Findings == 0; !r.OK {
		err := app.ErrDamaged
		if len(repairs) > 0 {
			err = app.Hint(err, "to repair: %s", strings.Join(repairs, "; "))
		}
		return errors.Join(s.Print(&r, ""), err)
	}
	result := "checksums and numbering are right"
	if deep {
		result = "every byte is what was written"
	}
	return s.Print(&r, "%s: %s, %s\n", s.Out.Paint(screen.Green, "ok"), amount.Plural(head.Number, "commit"), result)
}

// finding prints and counts a problem.
func finding(s *app.OpenStore, f backend.Finding, r *records.Verified) error {
	r.Findings++
	text := f.String()
	if f.Repair == backend.RebuildIndex {
		f.Repair = "lineage repair"
	}
	return s.Print(&records.Finding{Finding: f}, "%s\n", s.Out.Paint(screen.Red, screen.Line(text)))
}
