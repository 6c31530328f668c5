package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

func showCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show a context or message",
		Long: `Shows a context or branch with its origin and settings, or a message with its
whole text and origin.`,
		Example: `  lineage show
  lineage show :2
  lineage show cheap --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if a.dsn() != "" {
				return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.show(ctx, arg(args, 0)) })
			}
			return a.read(ctx, func(ctx context.Context, s *session) error { return runShow(ctx, s, arg(args, 0)) })
		}),
	}
}

func runShow(ctx context.Context, s *session, name string) error {
	found, err := s.position(ctx, name)
	if err != nil {
		return err
	}
	if found.Context != nil && !found.Moved {
		return s.showContext(ctx, found)
	}
	return s.showMessage(ctx, found)
}

func (s *session) showContext(ctx context.Context, found *refs.Ref) error {
	r, err := s.contextRecord(ctx, found.Context)
	if err != nil {
		return err
	}
	if s.json {
		return s.emit(r)
	}
	inForce, err := found.Context.Effective(ctx)
	if err != nil {
		return err
	}
	digest, err := found.Context.Digest(ctx)
	if err != nil {
		return err
	}
	table := screen.NewTable(s.out, "", "")
	row := func(name, value string) {
		if value != "" {
			table.Row(name, value)
		}
	}
	row("context", r.ID)
	row("branch", r.Branch)
	row("thread", r.Thread)
	row("parent", r.Parent)
	row("messages", screen.Count(int64(r.Length)))
	row("started at", text(r.Base))
	row("stands at", text(r.Tip))
	row("span set", r.SpanSet)
	row("model", text(inForce.Model))
	row("system prompt", text(inForce.SystemPrompt))
	row("overrides", string(inForce.JSON))
	row("metadata", string(r.Metadata))
	row("digest", digest.String())
	row("created", screen.Time(r.CreatedAt))
	row("changed", screen.Time(r.UpdatedAt))
	return table.Print()
}

func (s *session) showMessage(ctx context.Context, found *refs.Ref) error {
	entries, err := s.store.Span(ctx, found.Span)
	if err != nil {
		return err
	}
	position, err := s.store.Position(ctx, found.Span)
	if err != nil {
		return err
	}
	var parent lineage.SpanRef
	if position > 1 {
		if parent, err = s.store.At(ctx, found.Span, position-1); err != nil {
			return err
		}
	}
	for _, e := range entries {
		e.Position = position
		m, err := s.message(ctx, e, parent)
		if err != nil {
			return err
		}
		author, through, err := s.store.Author(ctx, e)
		if err != nil {
			return err
		}
		m.Origin = newOrigin(author)
		if s.json {
			if err := s.emit(m); err != nil {
				return err
			}
			continue
		}
		table := screen.NewTable(s.out, "", "")
		row := func(name, value string) {
			if value != "" {
				table.Row(name, value)
			}
		}
		row("message", m.ID)
		row("parent", text(m.Parent))
		row("content", m.ContentID)
		row("type", m.MediaType+", "+screen.Bytes(m.Size))
		if m.Origin != nil {
			row("origin", m.Origin.Kind)
			row("user", m.Origin.User)
			row("model", m.Origin.Model)
			row("source", m.Origin.Source)
			row("derived from", m.Origin.DerivedFrom)
		}
		if !through.IsZero() {
			row("added by", "context "+through.String())
		}
		row("source id", m.SourceID)
		row("span set", m.SpanSet)
		row("metadata", string(m.Metadata))
		if err := table.Print(); err != nil {
			return err
		}
		s.printf("\n")
		if err := s.printEntry(ctx, e, ""); err != nil {
			return err
		}
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
