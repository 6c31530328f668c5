package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

func WhereCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "where CONTENT",
		Short: "List every use of a content",
		Long: `Lists every message, document and file that holds the same bytes. The content is named by its
id, the beginning of one, or a message that holds it.`,
		Example: `  lineage where :1
  lineage where "$(printf 'Plan a weekend in Lisbon.' | sha256sum | cut -c1-64)" --json`,
		Args: cobra.ExactArgs(1),
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, args []string) error { return runWhere(ctx, s, args[0]) }),
	}
}

func runWhere(ctx context.Context, s *app.OpenStore, name string) error {
	id, err := s.Refs.Content(ctx, name)
	if err != nil {
		return err
	}
	if _, err := s.Store.View().Blocks(ctx, []lineage.ContentID{id}); err != nil {
		return err
	}
	list := s.List("MESSAGE", "POSITION", "WHEN", "ROLE", "ORIGIN")
	for e, err := range s.Store.Where(ctx, id) {
		if err != nil {
			return err
		}
		if s.JSON {
			if err := show.EmitEntry(ctx, s, e); err != nil {
				return err
			}
			continue
		}
		list.Row(app.IDCell(show.ShortID(records.EntryID(e))), app.CountCell(e.Position), app.TimeCell(e.CreatedAt), app.RoleCell(show.Speaker(e), e.Role), app.PlainCell(originText(e.Origin)))
	}
	return list.End("")
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
