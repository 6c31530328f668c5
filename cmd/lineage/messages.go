package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

const (
	// maxText is how much of a body is printed by anything but cat, and maxPreview how much is read for a line.
	maxText    = 16 << 20
	maxPreview = 64 << 10
)

// messageRecord is a message, or another use of content, in a history.
type messageRecord struct {
	// ID is the address of its span, with .N after it for a message that is not the first in
	// its span.
	ID string `json:"id"`
	// Parent is the id of the message before it.
	Parent   *string `json:"parent"`
	Position uint64  `json:"position"`
	// Kind is message, document or asset.
	Kind string `json:"kind"`
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
	// Document, Revision and Filename are those of documents and assets.
	Document  string `json:"document,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	Filename  string `json:"filename,omitempty"`
	ContentID string `json:"content_id"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	// Text is empty for media that is not text.
	Text string `json:"text"`
	// Data is the body where that is JSON.
	Data json.RawMessage `json:"data,omitempty"`
	// Truncated is set when the text is only the beginning.
	Truncated bool `json:"truncated,omitempty"`
	Erased    bool `json:"erased,omitempty"`
	// Origin is who it comes from.
	Origin   *originRecord   `json:"origin,omitempty"`
	SourceID string          `json:"source_id,omitempty"`
	SpanSet  string          `json:"span_set,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// CreatedAt is in RFC 3339.
	CreatedAt time.Time `json:"created_at"`
}

func (*messageRecord) recordType() string { return "message" }

// originRecord is where content comes from; it is part of other records.
type originRecord struct {
	Kind   string `json:"kind"`
	User   string `json:"user,omitempty"`
	Model  string `json:"model,omitempty"`
	Source string `json:"source,omitempty"`
	// DerivedFrom is the content that it was derived or edited from.
	DerivedFrom string `json:"derived_from,omitempty"`
}

func newOrigin(o lineage.Origin) *originRecord {
	if o.IsZero() {
		return nil
	}
	return &originRecord{Kind: o.Kind.String(), User: o.UserID, Model: o.ModelID, Source: o.SourceID, DerivedFrom: idText(o.ParentID)}
}

// entryID returns the id under which an entry is shown to programs.
func entryID(e *lineage.Entry) string {
	if e.Index == 0 {
		return e.Span.String()
	}
	return structure.UsageID{Span: e.Span, Index: e.Index}.String()
}

// shortID returns the form of an id that people read: that of refs for ids of things and addresses of messages, and
// any other id whole.
func shortID(id string) string {
	if parsed, err := structure.ParseID[lineage.ThreadID](id); err == nil {
		return refs.Short(parsed)
	}
	address, index, found := strings.Cut(id, ".")
	switch short := refs.ShortAddress(address); {
	case short == address:
		return id
	case found:
		return short + "." + index
	default:
		return short
	}
}

// message returns the record of an entry, with at most limit bytes of a body.
func (s *session) message(ctx context.Context, e *lineage.Entry, limit int64) (*messageRecord, error) {
	parent, err := s.parentOf(ctx, e)
	if err != nil {
		return nil, err
	}
	m := &messageRecord{
		ID: entryID(e), Position: e.Position, Kind: e.Kind.String(), Role: e.Role,
		Document: e.Document, Revision: e.Revision, Filename: e.Filename,
		ContentID: e.Content.String(), MediaType: e.Type, Size: e.Size, Erased: e.Erased,
		Origin: newOrigin(e.Origin), SourceID: e.SourceID, CreatedAt: e.CreatedAt.UTC(),
		Parent: spanID(parent), SpanSet: idText(e.Set), Metadata: rawJSON(e.Metadata),
	}
	if e.Name != e.Role {
		m.Name = e.Name
	}
	if isGone(e) || !isText(e.Type) {
		return m, nil
	}
	if len(e.Pieces) > 0 && (limit <= maxPreview || e.Erased) {
		m.Text = e.Text() // as much as was read with the entry
		return m, nil
	}
	body, err := s.body(ctx, e, limit)
	if err != nil {
		return nil, err
	}
	if m.Truncated = int64(len(body)) > limit; m.Truncated {
		body = body[:limit]
	} else if e.Type == content.TypeJSON {
		m.Data = rawJSON(body)
	}
	switch {
	case len(e.Pieces) > 0 && e.Size <= maxText:
		m.Text, err = s.store.Text(ctx, e)
	case len(e.Pieces) > 0:
		m.Text = e.Text()
	case e.Type == content.TypeJSON:
		m.Text = form.Text(body, e.Role)
	default:
		m.Text = string(body)
	}
	return m, err
}

// body returns what was given for an entry. Of a single piece with more than limit bytes it reads one byte more.
func (s *session) body(ctx context.Context, e *lineage.Entry, limit int64) ([]byte, error) {
	if len(e.Pieces) > 0 || e.Body != nil || e.Size <= limit {
		return s.store.Original(ctx, e)
	}
	r, err := s.store.Body(ctx, e.Content)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, limit+1))
}

// isText reports whether a media type is one that people read as it is.
func isText(mediaType string) bool {
	base, _, _ := strings.Cut(mediaType, ";")
	switch base {
	case content.TypeJSON, content.TypeXML, content.TypeYAML, content.TypeSVG, "":
		return true
	}
	return strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+json") || strings.HasSuffix(base, "+xml")
}

// rawJSON returns bytes as a JSON value: as they are if they are one, else as a
// string.
func rawJSON(b []byte) json.RawMessage {
	switch {
	case b == nil:
		return nil
	case json.Valid(b):
		return b
	}
	quoted, _ := json.Marshal(string(b)) // strings always marshal
	return quoted
}

// parentOf returns the span before an entry.
func (s *session) parentOf(ctx context.Context, e *lineage.Entry) (lineage.SpanRef, error) {
	switch {
	case e.Span.Seq > 1:
		return lineage.SpanRef{Run: e.Span.Run, Seq: e.Span.Seq - 1}, nil
	case e.Position <= 1:
		return lineage.SpanRef{}, nil
	}
	return s.store.At(ctx, e.Span, e.Position-1)
}

// emitEntry prints the record of an entry.
func (s *session) emitEntry(ctx context.Context, e *lineage.Entry) error {
	m, err := s.message(ctx, e, maxText)
	if err != nil {
		return err
	}
	return s.emit(m)
}

// listed returns the record of an entry for a list, which shows people a line of its text.
func (s *session) listed(ctx context.Context, e *lineage.Entry) (*messageRecord, error) {
	if s.json {
		return s.message(ctx, e, maxText)
	}
	return s.message(ctx, e, maxPreview)
}

// isGone reports whether all content of an entry was erased.
func isGone(e *lineage.Entry) bool {
	for i := range e.Pieces {
		if !e.Pieces[i].Erased {
			return false
		}
	}
	return e.Erased
}

// preview returns the text of an entry as one line.
func (s *session) preview(ctx context.Context, e *lineage.Entry) (string, error) {
	m, err := s.message(ctx, e, maxPreview)
	if err != nil {
		return "", err
	}
	return m.preview(), nil
}

// says implements threads.
func (s *session) says(ctx context.Context, _, id string) (string, error) {
	span, err := structure.ParseSpanRef(id)
	if err != nil {
		return "", err
	}
	entries, err := s.store.Span(ctx, span)
	if err != nil {
		return "", err
	}
	return s.preview(ctx, entries[len(entries)-1])
}

// preview returns the text of a message as one line.
func (m *messageRecord) preview() string {
	switch {
	case m.Erased && m.Text == "":
		return "(erased)"
	case !isText(m.MediaType):
		return fmt.Sprintf("(%s, %s)", m.MediaType, screen.Bytes(m.Size))
	}
	return screen.Line(m.Text)
}

// speaker returns the speaker of an entry, or its name if it is a document or file.
func speaker(e *lineage.Entry) string {
	m := messageRecord{Kind: e.Kind.String(), Role: e.Role, Name: e.Name, Document: e.Document, Filename: e.Filename}
	return m.speaker()
}

// speaker returns the speaker of a message, or its name if it is a document or file.
func (m *messageRecord) speaker() string {
	switch {
	case m.Kind == lineage.Document.String():
		return "document " + m.Document
	case m.Kind == lineage.Asset.String():
		return "file " + m.Filename
	case m.Name != "" && m.Name != m.Role:
		return m.Role + " " + m.Name
	}
	return m.Role
}

// printMessage prints a message. For people it prints the speaker and the names that point to the message, and below them
// the text.
func (a *app) printMessage(m *messageRecord, names []label) error {
	if a.json {
		return a.emit(m)
	}
	dim := func(text string) string { return a.out.Paint(screen.Dim, text) }
	who := a.out.Paint(screen.OfRole(m.Role)+";1", screen.Line(m.speaker()))
	if m.Origin != nil && m.Origin.Model != "" {
		who += dim(" (" + screen.Line(m.Origin.Model) + ")")
	}
	a.printf("%s  %s  %s", dim(fmt.Sprint(m.Position)), who, dim(screen.Line(shortID(m.ID))+"  "+screen.Time(m.CreatedAt)))
	if len(names) > 0 {
		a.printf("  %s", a.labelText(names))
	}
	text := a.indented(m.Text)
	if m.Erased && m.Text == "" || !isText(m.MediaType) {
		text = "    " + dim(m.preview()) + "\n"
	}
	a.printf("\n%s", text)
	if m.Truncated {
		a.printf("    %s\n", dim(fmt.Sprintf("… %s in all: lineage cat %s", screen.Bytes(m.Size), m.ContentID)))
	}
	a.printf("\n")
	return nil
}
