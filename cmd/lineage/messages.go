package main

import (
	"context"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
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
	if s.json {
		r, err := records.OfMessage(ctx, s.store, e, limit)
		if err != nil {
			return nil, err
		}
		return &readMessage{Message: *r}, nil
	}
	r, err := records.OfEntry(ctx, s.store, e)
	if err != nil {
		return nil, err
	}
	said, err := s.store.Transcribe(ctx, e, limit)
	return &readMessage{*r, said}, err
}

// emitEntry prints the record of an entry.
func (s *session) emitEntry(ctx context.Context, e *lineage.Entry) error {
	m, err := s.message(ctx, e, records.MaxText)
	if err != nil {
		return err
	}
	return s.emit(m)
}

// listed returns the record of an entry for a list, which shows people a line of its text.
func (s *session) listed(ctx context.Context, e *lineage.Entry) (*readMessage, error) {
	if s.json {
		return s.message(ctx, e, records.MaxText)
	}
	return s.message(ctx, e, records.MaxPreview)
}

// line returns what an entry says as one line.
func (s *session) line(ctx context.Context, e *lineage.Entry) (string, error) {
	m, err := s.store.Transcribe(ctx, e, records.MaxPreview)
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
