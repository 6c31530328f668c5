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
	v := &verification{OpenStore: s, record: records.Verified{Deep: deep, Commits: head.Number}}
	if err := v.verify(ctx); err != nil {
		return err
	}
	r := &v.record
	if r.OK = r.Findings == 0; !r.OK {
		err := app.ErrDamaged
		if len(v.repairs) > 0 {
			err = app.Hint(err, "to repair: %s", strings.Join(v.repairs, "; "))
		}
		return errors.Join(s.Print(r, ""), err)
	}
	result := "checksums and numbering are right"
	if deep {
		result = "every byte is what was written"
	}
	return s.Print(r, "%s: %s, %s\n", s.Out.Paint(screen.Green, "ok"), amount.Plural(head.Number, "commit"), result)
}

// verification is a run of the command.
type verification struct {
	*app.OpenStore
	record  records.Verified
	repairs []string // for the findings, each once
}

// verify checks the store and prints the findings.
func (v *verification) verify(ctx context.Context) error {
	// An unusable index was rebuilt for this command only. Damage to the journal is reported below, with its
	// position.
	if v.Store.Damage() == nil {
		for _, message := range v.Rebuilt {
			if err := v.found(backend.Finding{Subject: "index", Problem: message, Repair: backend.RebuildIndex}); err != nil {
				return err
			}
		}
	}
	line := v.Progress("verifying", amount.Bytes)
	for f, err := range v.Store.Verify(ctx, lineage.VerifyOptions{Deep: v.record.Deep, Progress: func(done, total int64) {
		v.record.CheckedBytes = max(v.record.CheckedBytes, done)
		line.Show(done, total)
	}}) {
		line.Done()
		if err != nil {
			return err
		}
		if err := v.found(f); err != nil {
			return err
		}
	}
	line.Done()
	if v.record.Deep && v.record.Findings == 0 {
		return verifySources(ctx, v.OpenStore, v.found)
	}
	return nil
}

// found prints and counts a problem, and notes its repair.
func (v *verification) found(f backend.Finding) error {
	v.record.Findings++
	text := f.String()
	repair := f.Repair
	if repair == backend.RebuildIndex {
		repair, f.Repair = "'lineage repair' rebuilds the index", "lineage repair"
	}
	if repair != "" && !slices.Contains(v.repairs, repair) {
		v.repairs = append(v.repairs, repair)
	}
	return v.Print(&records.Finding{Finding: f}, "%s\n", v.Out.Paint(screen.Red, screen.Line(text)))
}
