package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/lineage/usage/prices"
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
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, args []string) error { return in.show(ctx, arg(args, 0)) }),
	}
}

// show implements threads.
func (s *session) show(ctx context.Context, name string) error {
	found, err := s.refs.Find(ctx, name)
	if err != nil {
		return err
	}
	if found.Context != nil && !found.Moved {
		return s.showContext(ctx, found)
	}
	return s.showMessage(ctx, found)
}

func (s *session) showContext(ctx context.Context, found *refs.Ref) error {
	r, err := records.OfContext(ctx, s.store, found.Context)
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
	return s.facts(r, [][2]string{
		{"context", r.ID}, {"branch", r.Branch}, {"thread", r.Thread}, {"parent", r.Parent}, {"messages", screen.Count(r.Length)},
		{"base", text(r.Base)}, {"tip", text(r.Tip)}, {"span set", r.SpanSet}, {"model", text(inForce.Model)},
		{"system prompt", text(inForce.SystemPrompt)}, {"overrides", string(inForce.JSON)}, {"metadata", string(r.Metadata)},
		{"digest", digest.String()}, {"created", screen.Time(r.CreatedAt)}, {"changed", screen.Time(r.UpdatedAt)},
	}...)
}

func (s *session) showMessage(ctx context.Context, found *refs.Ref) error {
	entries, err := s.store.Span(ctx, found.Span)
	if err != nil {
		return err
	}
	r := s.read()
	if err := s.learnBefore(ctx, r, entries[0]); err != nil {
		return err
	}
	for _, e := range entries {
		m, err := s.message(ctx, e, records.MaxText)
		if err != nil {
			return err
		}
		author, through, err := s.store.Author(ctx, e)
		if err != nil {
			return err
		}
		used, err := s.usageOf(ctx, e)
		if err != nil {
			return err
		}
		m.Usage = used
		added := m.Origin
		m.Origin = records.NewOrigin(author)
		if s.json {
			if err := s.emit(m); err != nil {
				return err
			}
			continue
		}
		addedBy, by := "", records.Origin{}
		if !through.IsZero() {
			addedBy = "context " + through.String()
		}
		if m.Origin != nil {
			by = *m.Origin
		}
		if err := s.facts(m, [][2]string{
			{"message", m.ID}, {"parent", text(m.Parent)}, {"content", m.ContentID}, {"type", m.MediaType + ", " + screen.Bytes(m.Size)},
			{"origin", by.Kind}, {"user", by.User}, {"model", by.Model}, {"source", by.Source}, {"derived from", by.DerivedFrom},
			{"used", usedText(m.Usage)}, {"added by", addedBy}, {"source id", m.SourceID}, {"span set", m.SpanSet}, {"metadata", string(m.Metadata)},
		}...); err != nil {
			return err
		}
		s.printf("\n")
		m.Origin = added
		r.add(m, nil)
		r.end()
	}
	return nil
}

// usageOf returns what a message states of answers of models, nil for nothing.
func (s *session) usageOf(ctx context.Context, e *lineage.Entry) (*records.UsageFigures, error) {
	if e.Kind != lineage.Message || !message.MayStateUsage(e.Role) || e.Erased {
		return nil, nil
	}
	body, err := s.store.Original(ctx, e)
	if err != nil {
		return nil, err
	}
	answers := message.Usage(message.Record{Body: body, Role: e.Role, Model: e.Origin.ModelID, Metadata: e.Metadata})
	if len(answers) == 0 {
		return nil, nil
	}
	used := usage.Of(answers, e.CreatedAt, prices.Default())
	figures := used.Record()
	return &figures, nil
}

// callsBefore is how many messages before a result are searched for its call.
const callsBefore = 64

// learnBefore lets a reader know the calls before an entry, so that results name them.
func (s *session) learnBefore(ctx context.Context, r *reader, e *lineage.Entry) error {
	if s.json || e.Position == 1 {
		return nil
	}
	before, err := records.ParentOf(ctx, s.store, e)
	if err != nil {
		return err
	}
	for e, err := range s.store.History(ctx, before, lineage.Window{Last: callsBefore}) {
		if err != nil {
			return err
		}
		m, err := s.store.Transcribe(ctx, e, records.MaxPreview)
		if err != nil {
			return err
		}
		r.learn(m)
	}
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
