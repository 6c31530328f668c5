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

// maxText bounds how much of a body is printed by anything but cat.
const maxText = 16 << 20

// messageRecord is a message, or another use of content, in a history.
type messageRecord struct {
	// ID is the address of its span, with .N behind it for what is not the first in
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
	// Text is what it says, empty for media that is not text.
	Text string `json:"text"`
	// Data is the body where that is JSON.
	Data json.RawMessage `json:"data,omitempty"`
	// Truncated is set when the text is only the beginning.
	Truncated bool `json:"truncated,omitempty"`
	Erased    bool `json:"erased,omitempty"`
	// Origin tells who brought it.
	Origin   *originRecord   `json:"origin,omitempty"`
	SourceID string          `json:"source_id,omitempty"`
	SpanSet  string          `json:"span_set,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// CreatedAt is in RFC 3339.
	CreatedAt time.Time `json:"created_at"`
}

func (*messageRecord) recordType() string { return "message" }

// originRecord is who brought content; it is part of other records.
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
	r := &originRecord{Kind: o.Kind.String(), User: o.UserID, Model: o.ModelID, Source: o.SourceID}
	if !o.ParentID.IsZero() {
		r.DerivedFrom = o.ParentID.String()
	}
	return r
}

// entryID returns the id under which an entry is shown to programs.
func entryID(e *lineage.Entry) string {
	if e.Index == 0 {
		return e.Span.String()
	}
	return structure.UsageID{Span: e.Span, Index: e.Index}.String()
}

// shortEntry returns the id under which an entry is shown to people.
func shortEntry(e *lineage.Entry) string {
	if e.Index == 0 {
		return refs.ShortSpan(e.Span)
	}
	return fmt.Sprintf("%s.%d", refs.ShortSpan(e.Span), e.Index)
}

// message returns the record of an entry. parent is the span before it.
func (s *session) message(ctx context.Context, e *lineage.Entry, parent lineage.SpanRef) (*messageRecord, error) {
	m := &messageRecord{
		ID: entryID(e), Position: e.Position, Kind: e.Kind.String(), Role: e.Role,
		Document: e.Document, Revision: e.Revision, Filename: e.Filename,
		ContentID: e.Content.String(), MediaType: e.Type, Size: e.Size, Erased: e.Erased,
		Origin: newOrigin(e.Origin), SourceID: e.SourceID, CreatedAt: e.CreatedAt.UTC(),
		Metadata: rawJSON(e.Metadata),
	}
	if e.Name != e.Role {
		m.Name = e.Name
	}
	if !parent.IsZero() {
		id := parent.String()
		m.Parent = &id
	}
	if !e.Set.IsZero() {
		m.SpanSet = e.Set.String()
	}
	if isGone(e) || !isText(e.Type) {
		return m, nil
	}
	body, whole, err := s.body(ctx, e, maxText)
	if err != nil {
		return nil, err
	}
	m.Truncated = !whole
	if m.Text, err = s.textOf(ctx, e, body); err != nil {
		return nil, err
	}
	if whole && e.Type == content.TypeJSON && !e.Erased {
		m.Data = rawJSON(body)
	}
	return m, nil
}

// body returns what an entry says, and whether that is all of it.
func (s *session) body(ctx context.Context, e *lineage.Entry, limit int64) (body []byte, whole bool, err error) {
	if e.Erased {
		return nil, true, nil
	}
	if e.Body != nil || e.Size == 0 {
		if int64(len(e.Body)) > limit {
			return e.Body[:limit], false, nil
		}
		return e.Body, true, nil
	}
	if len(e.Pieces) > 0 {
		body, err = s.store.Original(ctx, e)
		whole = int64(len(body)) <= limit
		return body[:min(int64(len(body)), limit)], whole, err
	}
	r, err := s.store.Body(ctx, e.Content)
	if err != nil {
		return nil, false, err
	}
	if e.Size > limit {
		body, err = io.ReadAll(io.LimitReader(r, limit))
		return body, false, err
	}
	body, err = io.ReadAll(r)
	return body, true, err
}

// textOf returns what an entry with the given body says.
func (s *session) textOf(ctx context.Context, e *lineage.Entry, body []byte) (string, error) {
	switch {
	case len(e.Pieces) > 0 && !e.Erased && e.Size <= maxText:
		return s.store.Text(ctx, e)
	case len(e.Pieces) > 0:
		return e.Text(), nil
	case e.Type == content.TypeJSON:
		return form.Text(body, e.Role), nil
	}
	return string(body), nil
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
	quoted, err := json.Marshal(string(b))
	if err != nil {
		return nil
	}
	return quoted
}

// parentOf returns the span before an entry whose position is known.
func (s *session) parentOf(ctx context.Context, e *lineage.Entry) (lineage.SpanRef, error) {
	if e.Position <= 1 {
		return lineage.SpanRef{}, nil
	}
	return s.store.At(ctx, e.Span, e.Position-1)
}

// entryRecord is message for an entry whose position is known.
func (s *session) entryRecord(ctx context.Context, e *lineage.Entry) (*messageRecord, error) {
	parent, err := s.parentOf(ctx, e)
	if err != nil {
		return nil, err
	}
	return s.message(ctx, e, parent)
}

// emitEntry prints the record of an entry.
func (s *session) emitEntry(ctx context.Context, e *lineage.Entry) error {
	m, err := s.entryRecord(ctx, e)
	if err != nil {
		return err
	}
	return s.emit(m)
}

// history yields the records of a window of a history, each with its parent.
func (s *session) history(ctx context.Context, tip lineage.SpanRef, w lineage.Window, visit func(e *lineage.Entry, parent lineage.SpanRef) error) error {
	var parent, last lineage.SpanRef
	for e, err := range s.store.History(ctx, tip, w) {
		if err != nil {
			return err
		}
		if e.Span != last {
			if parent = last; last.IsZero() && e.Position > 1 {
				if parent, err = s.store.At(ctx, tip, e.Position-1); err != nil {
					return err
				}
			}
			last = e.Span
		}
		if err := visit(e, parent); err != nil {
			return err
		}
	}
	return nil
}

// isGone reports whether nothing is left of an entry: all that it said was erased.
func isGone(e *lineage.Entry) bool {
	for i := range e.Pieces {
		if !e.Pieces[i].Erased {
			return false
		}
	}
	return e.Erased
}

// preview returns what an entry says as one line.
func (s *session) preview(ctx context.Context, e *lineage.Entry) (string, error) {
	switch {
	case isGone(e):
		return "(erased)", nil
	case !isText(e.Type):
		return fmt.Sprintf("(%s, %s)", e.Type, screen.Bytes(e.Size)), nil
	}
	if len(e.Pieces) > 0 {
		return screen.Line(e.Text()), nil
	}
	body, _, err := s.body(ctx, e, 64<<10)
	if err != nil {
		return "", err
	}
	text, err := s.textOf(ctx, e, body)
	return screen.Line(text), err
}

// speaker returns who says an entry, or what it is.
func speaker(e *lineage.Entry) string {
	switch e.Kind {
	case lineage.Document:
		return fmt.Sprintf("document %s", e.Document)
	case lineage.Asset:
		return "file " + e.Filename
	}
	if e.Name != "" && e.Name != e.Role {
		return e.Role + " " + e.Name
	}
	return e.Role
}

// printEntry writes a message for a person: who says it, and below that what.
func (s *session) printEntry(ctx context.Context, e *lineage.Entry, labels string) error {
	head := s.out.Paint(screen.OfRole(e.Role)+";1", screen.Line(speaker(e)))
	if e.Origin.ModelID != "" {
		head += s.out.Paint(screen.Dim, " ("+screen.Line(e.Origin.ModelID)+")")
	}
	head = fmt.Sprintf("%s  %s  %s", s.out.Paint(screen.Dim, fmt.Sprintf("%d", e.Position)), head,
		s.out.Paint(screen.Dim, shortEntry(e)+"  "+screen.Time(e.CreatedAt)))
	if labels != "" {
		head += "  " + labels
	}
	s.printf("%s\n", head)
	if isGone(e) || !isText(e.Type) {
		line, err := s.preview(ctx, e)
		s.printf("    %s\n\n", s.out.Paint(screen.Dim, line))
		return err
	}
	body, whole, err := s.body(ctx, e, maxText)
	if err != nil {
		return err
	}
	text, err := s.textOf(ctx, e, body)
	if err != nil {
		return err
	}
	s.printf("%s", s.indented(text))
	if !whole {
		s.printf("    %s\n", s.out.Paint(screen.Dim, fmt.Sprintf("… %s in all: lineage cat %s", screen.Bytes(e.Size), e.Content)))
	}
	s.printf("\n")
	return nil
}
