package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/records"
)

func ProvenanceCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "provenance CONTENT",
		Short: "List the contents that a content was derived from",
		Long: `Lists a content and what it was derived or edited from, and so on to the first. The content is
named by its id, the beginning of one, or a message that holds it.`,
		Example: `  id=$(lineage edit :1 "Plan a week in Lisbon.") && lineage provenance $id`,
		Args:    cobra.ExactArgs(1),
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, args []string) error {
			return runProvenance(ctx, s, args[0])
		}),
	}
}

func newContentRecord(b *content.Block) *records.Content {
	created := b.CreatedAt.UTC()
	return &records.Content{ID: b.ID.String(), MediaType: b.Type, Size: b.Size, Origin: records.NewOrigin(b.Origin.By(content.Attribution{})), CreatedAt: &created}
}

func runProvenance(ctx context.Context, s *app.OpenStore, name string) error {
	id, err := s.Refs.Content(ctx, name)
	if err != nil {
		return err
	}
	chain, err := s.Store.Provenance(ctx, id)
	if err != nil {
		return err
	}
	list := s.List("CONTENT", "SIZE", "WHEN", "ORIGIN")
	for i, b := range chain {
		r := newContentRecord(&b)
		r.Step = i
		size, origin := screen.Cell{Text: "-", Right: true}, "not in the store any more"
		if r.Missing = b.CreatedAt.IsZero() && b.Type == ""; r.Missing {
			r.CreatedAt = nil
		} else {
			size, origin = app.SizeCell(uint64(b.Size)), originText(b.Origin.By(content.Attribution{}))
		}
		list.Add(r, app.IDCell(b.ID.Short()), size, app.TimeCell(b.CreatedAt), app.PlainCell(origin))
	}
	return list.End("")
}
