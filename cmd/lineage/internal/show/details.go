package show

import (
	"context"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/lineage/usage/prices"
)

// PrintContext prints a context with its origin and settings.
func PrintContext(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	r, err := records.OfContext(ctx, s.Store, found.Context)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.Emit(r)
	}
	inForce, err := found.Context.Effective(ctx)
	if err != nil {
		return err
	}
	digest, err := found.Context.Digest(ctx)
	if err != nil {
		return err
	}
	return s.Facts(r, [][2]string{
		{"context", r.ID}, {"branch", r.Branch}, {"thread", r.Thread}, {"parent", r.Parent}, {"messages", amount.Count(r.Length)},
		{"base", OrEmpty(r.Base)}, {"tip", OrEmpty(r.Tip)}, {"span set", r.SpanSet}, {"model", OrEmpty(inForce.Model)},
		{"system prompt", OrEmpty(inForce.SystemPrompt)}, {"overrides", string(inForce.JSON)}, {"metadata", string(r.Metadata)},
		{"digest", digest.String()}, {"created", screen.Time(r.CreatedAt)}, {"changed", screen.Time(r.UpdatedAt)},
	}...)
}

// PrintSpan prints the messages of a span with their origins.
func PrintSpan(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	entries, err := s.Store.Span(ctx, found.Span)
	if err != nil {
		return err
	}
	r := NewReader(s.App)
	if err := LearnBefore(ctx, s, r, entries[0]); err != nil {
		return err
	}
	for _, e := range entries {
		if err := printEntry(ctx, s, r, e); err != nil {
			return err
		}
	}
	return nil
}

// printEntry prints a message with the origin of its author, which its record does not state in full.
func printEntry(ctx context.Context, s *app.OpenStore, r *Reader, e *lineage.Entry) error {
	m, err := Message(ctx, s, e, records.MaxText)
	if err != nil {
		return err
	}
	if m.Usage, err = usageOf(ctx, s, e); err != nil {
		return err
	}
	author, through, err := s.Store.Author(ctx, e)
	if err != nil {
		return err
	}
	ownOrigin := m.Origin
	m.Origin = records.NewOrigin(author)
	if s.JSON {
		return s.Emit(m)
	}
	if err := printFacts(s, m, through); err != nil {
		return err
	}
	s.Printf("\n")
	m.Origin = ownOrigin
	r.Add(m, nil)
	r.End()
	return nil
}

// printFacts prints what is known of a message except its text. through is the context that it was added through, or zero.
func printFacts(s *app.OpenStore, m *ReadMessage, through lineage.ContextID) error {
	var addedBy string
	if !through.IsZero() {
		addedBy = "context " + through.String()
	}
	var origin records.Origin
	if m.Origin != nil {
		origin = *m.Origin
	}
	return s.Facts(m, [][2]string{
		{"message", m.ID}, {"parent", OrEmpty(m.Parent)}, {"content", m.ContentID}, {"type", m.MediaType + ", " + amount.Bytes(m.Size)},
		{"origin", origin.Kind}, {"user", origin.User}, {"model", origin.Model}, {"source", origin.Source}, {"derived from", origin.DerivedFrom},
		{"used", UsedText(m.Usage)}, {"added by", addedBy}, {"source id", m.SourceID}, {"span set", m.SpanSet}, {"metadata", string(m.Metadata)},
	}...)
}

// usageOf returns the usage that a message states, nil for none.
func usageOf(ctx context.Context, s *app.OpenStore, e *lineage.Entry) (*records.UsageFigures, error) {
	if e.Kind != lineage.Message || !message.MayStateUsage(e.Role) || e.Erased {
		return nil, nil
	}
	body, err := s.Store.Original(ctx, e)
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

// callsBefore is the number of messages before a result that are searched for its call.
const callsBefore = 64

// LearnBefore tells a reader the calls before an entry, so that results can name them.
func LearnBefore(ctx context.Context, s *app.OpenStore, r *Reader, e *lineage.Entry) error {
	if s.JSON || e.Position == 1 {
		return nil
	}
	before, err := records.ParentOf(ctx, s.Store, e)
	if err != nil {
		return err
	}
	for e, err := range s.Store.History(ctx, before, lineage.Window{Last: callsBefore}) {
		if err != nil {
			return err
		}
		m, err := s.Store.Transcribe(ctx, e, records.MaxPreview)
		if err != nil {
			return err
		}
		r.Learn(m)
	}
	return nil
}

// OrEmpty returns a text, empty for nil.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
