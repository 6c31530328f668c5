package history

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/difference"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func DiffCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A [B]",
		Short: "Compare two histories",
		Long: `Prints the messages of two histories that follow those shared at the start: those only in A with
a minus, those only in B with a plus. Messages after the fork that say the same in both, such as
those that were replayed after an edit, are counted and not printed. B is the active branch unless
another is named. It reads only what is not shared. Exits with 0 whether or not they differ.`,
		Example: `  lineage diff main cheap
  lineage diff start --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, args []string) error {
			return runDiff(ctx, s, args[0], app.Arg(args, 1))
		}),
	}
}

func runDiff(ctx context.Context, s *app.OpenStore, nameA, nameB string) error {
	a, b, err := s.Positions(ctx, nameA, nameB)
	if err != nil {
		return err
	}
	d, err := difference.Of(ctx, s.Store, a.Span, b.Span, 0)
	if err != nil {
		return err
	}
	if !s.JSON {
		line := amount.Plural(d.Common, "message") + " in common"
		if d.Same > 0 {
			line += fmt.Sprintf(", %s after the fork the same", amount.Count(d.Same))
		}
		s.Printf("%s\n", s.Out.Paint(screen.Dim, line))
	}
	for _, side := range []struct {
		found *refs.Ref
		only  []bool
		name  string
		mark  string
		style screen.Style
	}{{a, d.A, "a", "-", screen.Red}, {b, d.B, "b", "+", screen.Green}} {
		list := s.List("", "", "", "", "")
		i := 0
		for e, err := range s.Store.History(ctx, side.found.Span, lineage.Window{From: d.Common + 1}) {
			if err != nil {
				return err
			}
			if i++; !side.only[i-1] {
				continue
			}
			m, err := show.Listed(ctx, s, e)
			if err != nil {
				return err
			}
			speaker, text := m.Line()
			list.Add(&records.Diff{Side: side.name, Message: &m.Message}, screen.Cell{Text: side.mark, Style: side.style},
				screen.Cell{Text: amount.Count(m.Position), Right: true, Style: screen.Dim}, app.IDCell(show.ShortID(m.ID)), speaker, screen.Cell{Text: text, Style: side.style})
		}
		if err := list.End(""); err != nil {
			return err
		}
	}
	if s.JSON {
		return s.Emit(&records.DiffSummary{Common: d.Common, OnlyA: d.OnlyA(), OnlyB: d.OnlyB(), Same: d.Same})
	}
	return nil
}
