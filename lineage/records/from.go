package records

import (
	"encoding/json"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// ID returns an id for a record, empty for the zero id.
func ID(id interface {
	IsZero() bool
	String() string
}) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// SpanID returns the id of a span for a record, nil for the empty position.
func SpanID(ref lineage.SpanRef) *string {
	if ref.IsZero() {
		return nil
	}
	id := ref.String()
	return &id
}

// EntryID returns the id of an entry of a history.
func EntryID(e *lineage.Entry) string {
	if e.Index == 0 {
		return e.Span.String()
	}
	return structure.UsageID{Span: e.Span, Index: e.Index}.String()
}

// JSON returns bytes as a JSON value: unchanged if they are JSON, else as a string.
func JSON(b []byte) json.RawMessage {
	switch {
	case b == nil:
		return nil
	case json.Valid(b):
		return b
	}
	quoted, _ := json.Marshal(string(b)) // strings always marshal
	return quoted
}

// NewOrigin returns the record of an origin, nil for none.
func NewOrigin(o lineage.Origin) *Origin {
	if o.IsZero() {
		return nil
	}
	return &Origin{Kind: o.Kind.String(), User: o.UserID, Model: o.ModelID, Source: o.SourceID, DerivedFrom: ID(o.ParentID)}
}

// NewEvent returns the record of an event of a change.
func NewEvent(c *lineage.Change, e *lineage.Event) *Event {
	r := &Event{
		Commit: c.Commit.Number, Time: c.Time.UTC(), Kind: string(e.Kind), Thread: ID(e.Thread), Context: ID(e.Context),
		Parent: ID(e.Parent), Span: ID(e.Span), From: ID(e.From), Name: e.Name, ContentID: ID(e.Content),
		Checkpoint: ID(e.Checkpoint), Summary: ID(e.Summary), SpanSet: ID(e.Set),
	}
	if e.Owner.Scope != 0 {
		r.Owner = e.Owner.String()
	}
	return r
}

// NewSummary returns the record of a summary.
func NewSummary(i *lineage.SummaryInfo) *Summary {
	return &Summary{
		ID: i.ID.String(), Context: i.Context.String(), ContentID: i.Content.String(), First: i.First, Last: i.Last,
		Level: i.Level, Model: i.Model, Text: i.Text, CreatedAt: i.CreatedAt.UTC(),
	}
}
