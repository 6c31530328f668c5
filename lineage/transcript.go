package lineage

import (
	"context"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// Transcript yields a window of the history that ends at a span as people read it: prompts, answers,
// calls with their results, files. Bodies up to MostText are read.
func (s *Store) Transcript(ctx context.Context, tip SpanRef, w Window, o transcript.Options) iter.Seq2[*transcript.Item, error] {
	return transcript.All(s.transcribed(ctx, tip, w, MostText), o)
}

// transcribed yields a history as messages of a transcript.
func (s *Store) transcribed(ctx context.Context, tip SpanRef, w Window, most int64) iter.Seq2[*transcript.Message, error] {
	return func(yield func(*transcript.Message, error) bool) {
		for e, err := range s.History(ctx, tip, w) {
			if err != nil {
				yield(nil, err)
				return
			}
			if m, err := s.Transcribe(ctx, e, most); !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// excerptBytes is the number of bytes that are read of a text that is too large to be read whole.
const excerptBytes = 4 << 10

// Transcribe returns an entry as a message of a transcript. For a body larger than most bytes, the message has only
// the starts of its large texts, and notes instead of its files and other large values. Erased content is a note too.
func (s *Store) Transcribe(ctx context.Context, e *Entry, most int64) (*transcript.Message, error) {
	m := &transcript.Message{
		Position: e.Position, ID: e.Span.String(), Role: e.Role, Model: e.Origin.ModelID, Created: e.CreatedAt,
		Type: e.Type, Body: e.Body, Size: e.Size, Metadata: e.Metadata, Document: e.Document, Revision: e.Revision, Filename: e.Filename,
	}
	m.Name = e.OwnName()
	if e.Index > 0 {
		m.ID = structure.UsageID{Span: e.Span, Index: e.Index}.String()
	}
	var err error
	switch {
	case e.Kind == Asset || e.Body != nil: // m.Body is what is shown
	case e.message != nil && (e.Erased || e.Size > most):
		m.Body, err = s.excerpt(ctx, e.message)
		m.Size = int64(len(m.Body))
		m.Erased = m.Body == nil
	case e.Erased:
		m.Erased = true
	case e.Size <= most:
		m.Body, err = s.Original(ctx, e)
	case e.Type != content.TypeJSON:
		m.Body, err = s.start(ctx, e.Content)
	}
	return m, err
}

// excerpt returns a message with only the starts of its large texts, nil if nothing is left of it.
func (s *Store) excerpt(ctx context.Context, m *form.Message) (body []byte, err error) {
	body = m.Excerpt(func(p *form.Stored) []byte {
		text, failed := s.start(ctx, p.Content)
		if failed != nil {
			err = failed
		}
		return text
	})
	return body, err
}

// start returns the start of a large text, up to the end of a character.
func (s *Store) start(ctx context.Context, id ContentID) ([]byte, error) {
	r, err := s.Body(ctx, id)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, excerptBytes))
	for n := len(text) - 1; n >= 0 && n > len(text)-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) && !utf8.FullRune(text[n:]) {
			return text[:n], err
		}
	}
	return text, err
}

// ShownTitle returns the title under which a thread is listed and exported, in one line. It is the title of the
// thread; else the start of its first prompt, if one of the first messages is a prompt; else its first command or
// text; else its source id. If there is none of these, it is empty. If only subagents have messages in the thread,
// their messages are used. Of thread only ID, SourceID, Title and Active are read; without an ID no messages of
// subagents are used.
func (s *Store) ShownTitle(ctx context.Context, thread ThreadInfo) (string, error) {
	return transcript.Title(thread.Title, thread.SourceID, func(yield func(*transcript.Message, error) bool) {
		tip, err := titledBy(ctx, s.engine, &thread)
		switch {
		case err != nil:
			yield(nil, err)
		case !tip.IsZero():
			s.transcribed(ctx, tip, Window{}, content.InlineLimit)(yield)
		}
	})
}

// titledBy returns the end of the history that a thread without a title is named after: that of the active context, or of the first
// one with messages. It is zero if there is none.
func titledBy(ctx context.Context, from backend.Reader, thread *ThreadInfo) (SpanRef, error) {
	active, err := from.Context(ctx, thread.Active)
	switch {
	case isNotFound(err):
		return SpanRef{}, nil
	case err != nil:
		return SpanRef{}, err
	case !active.Tip.IsZero() || thread.ID.IsZero(): // the contexts of no thread are those of all
		return active.Tip, nil
	}
	for c, err := range from.Contexts(ctx, thread.ID, ContextID{}) {
		switch {
		case err != nil:
			return SpanRef{}, err
		case !c.Tip.IsZero() && !BesideMessages(c.Metadata):
			return c.Tip, nil
		}
	}
	return SpanRef{}, nil
}
