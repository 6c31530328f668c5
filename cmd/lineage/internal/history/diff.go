package history

import (
	"context"
	"fmt"

	"github.com/aymanbagabas/go-udiff/lcs"
	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
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
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.Session, args []string) error {
			return runDiff(ctx, s, args[0], app.Arg(args, 1))
		}),
	}
}

func runDiff(ctx context.Context, s *app.Session, nameA, nameB string) error {
	a, b, err := s.Positions(ctx, nameA, nameB)
	if err != nil {
		return err
	}
	common, err := s.Store.CommonPrefix(ctx, a.Span, b.Span)
	if err != nil {
		return err
	}
	after := lineage.Window{From: common + 1}
	saidA, err := saidIn(ctx, s, a.Span, after)
	if err != nil {
		return err
	}
	saidB, err := saidIn(ctx, s, b.Span, after)
	if err != nil {
		return err
	}
	onlyA, onlyB := make([]bool, len(saidA)), make([]bool, len(saidB))
	summary := records.DiffSummary{Common: common, Same: uint64(len(saidA))}
	for _, d := range lcs.DiffLines(saidA, saidB) {
		for i := d.Start; i < d.End; i++ {
			onlyA[i] = true
			summary.Same--
		}
		for i := d.ReplStart; i < d.ReplEnd; i++ {
			onlyB[i] = true
		}
	}
	if !s.JSON {
		line := screen.Plural(common, "message") + " in common"
		if summary.Same > 0 {
			line += fmt.Sprintf(", %s after the fork the same", screen.Count(summary.Same))
		}
		s.Printf("%s\n", s.Out.Paint(screen.Dim, line))
	}
	for _, side := range []struct {
		found *refs.Ref
		only  []bool
		name  string
		mark  string
		style screen.Style
		count *uint64
	}{{a, onlyA, "a", "-", screen.Red, &summary.OnlyA}, {b, onlyB, "b", "+", screen.Green, &summary.OnlyB}} {
		list := s.List("", "", "", "", "")
		i := 0
		for e, err := range s.Store.History(ctx, side.found.Span, after) {
			if err != nil {
				return err
			}
			if i++; !side.only[i-1] {
				continue
			}
			*side.count++
			m, err := show.Listed(ctx, s, e)
			if err != nil {
				return err
			}
			speaker, text := m.Line()
			list.Add(&records.Diff{Side: side.name, Message: &m.Message}, screen.Cell{Text: side.mark, Style: side.style},
				screen.Cell{Text: screen.Count(m.Position), Right: true, Style: screen.Dim}, app.IDCell(show.ShortID(m.ID)), speaker, screen.Cell{Text: text, Style: side.style})
		}
		if err := list.End(""); err != nil {
			return err
		}
	}
	if s.JSON {
		return s.Emit(&summary)
	}
	return nil
}

// saidIn returns for each message of a history a text that is equal for messages that say the same.
func saidIn(ctx context.Context, s *app.Session, span lineage.SpanRef, w lineage.Window) (said []string, err error) {
	for e, err := range s.Store.History(ctx, span, w) {
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("%v %q %q %q %d %q %v", e.Kind, e.Role, e.Name, e.Document, e.Revision, e.Filename, e.Content)
		for _, p := range e.Pieces {
			text += " " + p.Content.String()
		}
		said = append(said, text)
	}
	return said, nil
}
