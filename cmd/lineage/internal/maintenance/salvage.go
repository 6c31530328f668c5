package maintenance

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/records"
)

func SalvageCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "salvage STORE DIR",
		Short: "Copy the readable part of a damaged store to a new one",
		Long: `Reads the journal of a store that no process has open and creates a new store, in a directory that
is new or empty, of every commit that can be read, those after damage included. The damaged
store is not changed, and its index is not needed. Every part that cannot be read is reported.

A lost message before one that can be read is replaced by a note. Lost content reads as erased.
What a lost commit deleted or erased may be there again. A context whose thread is lost gets a
new thread, whose title begins with "salvaged".
A backup is better: 'lineage restore' loses nothing.`,
		Example: `  lineage salvage .lineage salvaged.lineage`,
		Args:    cobra.ExactArgs(2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			return runSalvage(ctx, a, args[0], args[1])
		}),
	}
}

func runSalvage(ctx context.Context, a *app.App, from, dir string) error {
	line := a.Progress("salvaging", amount.Bytes)
	var failure error
	lost := func(l embedded.LostPart) {
		line.Done()
		failure = cmp.Or(failure, a.Print(&records.Loss{LostPart: l}, "lost: %s\n", screen.Line(l.String())))
	}
	r, err := embedded.Salvage(ctx, from, dir, embedded.SalvageOptions{Lost: lost, Progress: line.Show})
	line.Done()
	if err != nil {
		return app.NotWaited(err)
	}
	if failure != nil {
		return failure
	}
	if err := printSalvaged(a, &records.Salvaged{Store: app.ShownStore(dir), SalvageReport: r}); err != nil {
		return err
	}
	return salvageOutcome(&r)
}

// salvageOutcome returns an error if something is lost.
func salvageOutcome(r *embedded.SalvageReport) error {
	if r.Whole() {
		return nil
	}
	lost := "no commit is"
	if r.Missing > 0 {
		lost = amount.Plural(r.Missing, "commit")
	}
	return fmt.Errorf("%s of the files could not be read, %s known to be lost: %w", amount.Plural(r.Losses, "part"), lost, app.ErrPartial)
}

func printSalvaged(a *app.App, r *records.Salvaged) error {
	if a.JSON {
		return a.Emit(r)
	}
	a.Printf("salvaged %s into %s\n", amount.Plural(r.Commits, "commit"), r.Store)
	for _, part := range []struct {
		n           uint64
		thing, what string
	}{
		{r.Messages, "message", "lost, each replaced by a note"},
		{r.Contents, "content", "lost: what had it reads as erased"},
		{r.Names, "id", "of threads, contexts and runs of which nothing else is known"},
		{r.Records, "other record", "left out: what they were about is lost"},
	} {
		if part.n > 0 {
			a.Printf("  %s %s\n", amount.Plural(part.n, part.thing), part.what)
		}
	}
	return nil
}
