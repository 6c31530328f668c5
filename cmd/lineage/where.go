package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
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
		RunE: a.on(reading, func(ctx context.Context, s *session, args []string) error { return runWhere(ctx, s, args[0]) }),
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
	list := s.list("MESSAGE", "POSITION", "WHEN", "ROLE", "ORIGIN")
	for e, err := range s.store.Where(ctx, id) {
		if err != nil {
			return err
		}
		if s.json {
			if err := s.emitEntry(ctx, e); err != nil {
				return err
			}
			continue
		}
		list.row(idCell(shortID(records.EntryID(e))), countCell(e.Position), timeCell(e.CreatedAt), roleCell(speaker(e), e.Role), plainCell(originText(e.Origin)))
	}
	return list.end("")
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
