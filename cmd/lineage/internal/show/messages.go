// Package show prints what commands read from a store or database: messages, contexts, trees, costs.
package show

import (
	"context"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// ReadMessage is a message that a command read. The text and data of its record are for programs.
type ReadMessage struct {
	records.Message
	// Said is the message for people.
	Said *transcript.Message `json:"-"`
}

// ShortID returns an id in the form for people. Ids of things and addresses of messages are shortened as in package
// refs. Other ids stay whole.
func ShortID(id string) string {
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

// Message returns the record of an entry, with at most limit bytes of a body.
func Message(ctx context.Context, s *app.OpenStore, e *lineage.Entry, limit int64) (*ReadMessage, error) {
	if s.JSON {
		r, err := records.OfMessage(ctx, s.Store, e, limit)
		if err != nil {
			return nil, err
		}
		return &ReadMessage{Message: *r}, nil
	}
	r, err := records.OfEntry(ctx, s.Store, e)
	if err != nil {
		return nil, err
	}
	message, err := s.Store.Transcribe(ctx, e, limit)
	return &ReadMessage{*r, message}, err
}

// EmitEntry prints the record of an entry.
func EmitEntry(ctx context.Context, s *app.OpenStore, e *lineage.Entry) error {
	m, err := Message(ctx, s, e, records.MaxText)
	if err != nil {
		return err
	}
	return s.Emit(m)
}

// Listed returns the record of an entry for a list, which shows people a line of its text.
func Listed(ctx context.Context, s *app.OpenStore, e *lineage.Entry) (*ReadMessage, error) {
	if s.JSON {
		return Message(ctx, s, e, records.MaxText)
	}
	return Message(ctx, s, e, records.MaxPreview)
}

// Line returns the content of an entry in one line.
func Line(ctx context.Context, s *app.OpenStore, e *lineage.Entry) (string, error) {
	m, err := s.Store.Transcribe(ctx, e, records.MaxPreview)
	if err != nil {
		return "", err
	}
	_, line := transcript.Line(m)
	return screen.Line(line), nil
}

// Line returns a cell with the speaker of a message, and its content. They are empty for programs.
func (m *ReadMessage) Line() (screen.Cell, string) {
	if m.Said == nil {
		return screen.Cell{}, ""
	}
	speaker, line := transcript.Line(m.Said)
	return app.RoleCell(speaker, m.Role), screen.Line(line)
}

// Speaker returns the speaker of an entry, or its name if it is a document or file.
func Speaker(e *lineage.Entry) string {
	switch e.Kind {
	case lineage.Document:
		return "document " + e.Document
	case lineage.Asset:
		return "file " + e.Filename
	}
	return strings.TrimSuffix(e.Role+" "+e.OwnName(), " ")
}
