package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

func whereCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "where CONTENT",
		Short: "List every use of a content",
		Long: `Lists every message, document and file that holds the same bytes. The content is named by its
id, the beginning of one, or a message that holds it.`,
		Example: `  lineage where :1
  lineage where "$(printf 'Plan a weekend in Lisbon.' | sha256sum | cut -c1-64)" --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return a.read(ctx, func(ctx context.Context, s *session) error { return runWhere(ctx, s, args[0]) })
		}),
	}
}

func runWhere(ctx context.Context, s *session, name string) error {
	id, err := s.refs.Content(ctx, name)
	if err != nil {
		return err
	}
	if _, err := s.store.View().Blocks(ctx, []lineage.ContentID{id}); err != nil {
		return err
	}
	table := screen.NewTable(s.out, "MESSAGE", "POSITION", "WHEN", "ROLE", "ORIGIN")
	for e, err := range s.store.Where(ctx, id) {
		if err != nil {
			return err
		}
		if e.Position, err = s.store.Position(ctx, e.Span); err != nil {
			return err
		}
		if s.json {
			var parent lineage.SpanRef
			if e.Position > 1 {
				if parent, err = s.store.At(ctx, e.Span, e.Position-1); err != nil {
					return err
				}
			}
			m, err := s.message(ctx, e, parent)
			if err != nil {
				return err
			}
			if err := s.emit(m); err != nil {
				return err
			}
			continue
		}
		table.Cells(screen.Cell{Text: shortEntry(e), Style: screen.Yellow}, screen.Cell{Text: screen.Count(int64(e.Position)), Right: true},
			screen.Cell{Text: screen.Time(e.CreatedAt), Style: screen.Dim}, screen.Cell{Text: speaker(e), Style: screen.OfRole(e.Role)},
			screen.Cell{Text: originText(e.Origin)})
	}
	if s.json {
		return nil
	}
	return table.Print()
}

// originText returns an origin as a line.
func originText(o lineage.Origin) string {
	line := o.Kind.String()
	for _, more := range [][2]string{{"user", o.UserID}, {"model", o.ModelID}, {"source", o.SourceID}} {
		if more[1] != "" {
			line += ", " + more[0] + " " + more[1]
		}
	}
	if !o.ParentID.IsZero() {
		line += ", derived from " + o.ParentID.Short()
	}
	return line
}
