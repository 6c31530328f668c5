package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/content"
)

func provenanceCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "provenance CONTENT",
		Short: "List the contents that a content was derived from",
		Long: `Lists a content and what it was derived or edited from, and so on to the first. The content is
named by its id, the beginning of one, or a message that holds it.`,
		Example: `  id=$(lineage edit :1 "Plan a week in Lisbon.") && lineage provenance $id`,
		Args:    cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return a.read(ctx, func(ctx context.Context, s *session) error { return runProvenance(ctx, s, args[0]) })
		}),
	}
}

// contentRecord is a content and who first brought it.
type contentRecord struct {
	ID string `json:"id"`
	// Step counts from the content asked for, 0.
	Step      int           `json:"step"`
	MediaType string        `json:"media_type,omitempty"`
	Size      int64         `json:"size"`
	Origin    *originRecord `json:"origin,omitempty"`
	// Missing is set for what is not in the store any more.
	Missing   bool       `json:"missing,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
}

func (*contentRecord) recordType() string { return "content" }

func runProvenance(ctx context.Context, s *session, name string) error {
	id, err := s.refs.Content(ctx, name)
	if err != nil {
		return err
	}
	chain, err := s.store.Provenance(ctx, id)
	if err != nil {
		return err
	}
	table := screen.NewTable(s.out, "CONTENT", "SIZE", "WHEN", "ORIGIN")
	for i, b := range chain {
		missing := b.CreatedAt.IsZero() && b.Type == ""
		if s.json {
			r := contentRecord{ID: b.ID.String(), Step: i, MediaType: b.Type, Size: b.Size, Origin: newOrigin(b.Origin.By(content.Attribution{})), Missing: missing}
			if !missing {
				created := b.CreatedAt.UTC()
				r.CreatedAt = &created
			}
			if err := s.emit(&r); err != nil {
				return err
			}
			continue
		}
		size, origin := screen.Bytes(b.Size), originText(b.Origin.By(content.Attribution{}))
		if missing {
			size, origin = "-", "not in the store any more"
		}
		table.Cells(screen.Cell{Text: b.ID.Short(), Style: screen.Yellow}, screen.Cell{Text: size, Right: true},
			screen.Cell{Text: screen.Time(b.CreatedAt), Style: screen.Dim}, screen.Cell{Text: origin})
	}
	if s.json {
		return nil
	}
	return table.Print()
}
