package main

import (
	"context"
	"io"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

const (
	// maxText is how much of a body is printed by anything but cat, and maxPreview how much is read for a line.
	maxText    = 16 << 20
	maxPreview = 64 << 10
)

// A readMessage is a message that a command read. The text and data of its record are for programs.
type readMessage struct {
	records.Message
	// said is what people read of it.
	said *transcript.Message
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
func (s *session) message(ctx context.Context, e *lineage.Entry, limit int64) (*readMessage, error) {
	parent, err := s.parentOf(ctx, e)
	if err != nil {
		return nil, err
	}
	m := &readMessage{Message: records.Message{
		ID: records.EntryID(e), Position: e.Position, Kind: e.Kind.String(), Role: e.Role,
		Document: e.Document, Revision: e.Revision, Filename: e.Filename,
		ContentID: e.Content.String(), MediaType: e.Type, Size: e.Size, Erased: e.Erased,
		Origin: records.NewOrigin(e.Origin), SourceID: e.SourceID, CreatedAt: e.CreatedAt.UTC(),
		Parent: records.SpanID(parent), SpanSet: records.ID(e.Set), Metadata: records.JSON(e.Metadata),
	}}
	if e.Name != e.Role {
		m.Name = e.Name
	}
	if !s.json {
		m.said, err = s.store.Transcribe(ctx, e, limit)
		return m, err
	}
	if isGone(e) || !isText(e.Type) {
		return m, nil
	}
	if len(e.Pieces) > 0 && (limit <= maxPreview || e.Erased) {
		m.Text = e.Excerpt() // as much as was read with the entry
		return m, nil
	}
	body, err := s.body(ctx, e, limit)
	if err != nil {
		return nil, err
	}
	if m.Truncated = int64(len(body)) > limit; m.Truncated {
		body = body[:limit]
	} else if e.Type == content.TypeJSON {
		m.Data = records.JSON(body)
	}
	switch {
	case len(e.Pieces) > 0 && e.Size <= maxText:
		m.Text, err = s.store.Text(ctx, e)
	case len(e.Pieces) > 0:
		m.Text = e.Excerpt()
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
func (s *session) listed(ctx context.Context, e *lineage.Entry) (*readMessage, error) {
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

// line returns what an entry says as one line.
func (s *session) line(ctx context.Context, e *lineage.Entry) (string, error) {
	m, err := s.store.Transcribe(ctx, e, maxPreview)
	if err != nil {
		return "", err
	}
	_, line := transcript.Line(m)
	return screen.Line(line), nil
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
	return s.line(ctx, entries[len(entries)-1])
}

// line returns the cell of the speaker of a message and what it says. They are empty for programs.
func (m *readMessage) line() (screen.Cell, string) {
	if m.said == nil {
		return screen.Cell{}, ""
	}
	speaker, line := transcript.Line(m.said)
	return roleCell(speaker, m.Role), screen.Line(line)
}

// speaker returns the speaker of an entry, or its name if it is a document or file.
func speaker(e *lineage.Entry) string {
	switch {
	case e.Kind == lineage.Document:
		return "document " + e.Document
	case e.Kind == lineage.Asset:
		return "file " + e.Filename
	case e.Name != "" && e.Name != e.Role:
		return e.Role + " " + e.Name
	}
	return e.Role
}
