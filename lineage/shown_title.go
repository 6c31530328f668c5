package lineage

import (
	"context"
	"io"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/title"
)

// ShownTitle returns the title under which a thread is listed and exported, in one line: its title,
// else the start of its first message, which is that of a user if one of the first few is, else its
// source id. It is empty if the thread has none of these.
func (s *Store) ShownTitle(ctx context.Context, thread ThreadInfo) (string, error) {
	return title.Shown(thread.Title, thread.SourceID, s.opening(ctx, thread.Active))
}

// openingBytes limits how much of a message is read for a title.
const openingBytes = 4 << 10

// opening yields the messages of a context from the first one on.
func (s *Store) opening(ctx context.Context, id ContextID) iter.Seq2[title.Message, error] {
	return func(yield func(title.Message, error) bool) {
		active, err := s.engine.Context(ctx, id)
		if isNotFound(err) {
			return
		}
		if err != nil {
			yield(title.Message{}, err)
			return
		}
		for e, err := range s.History(ctx, active.Tip, Window{}) {
			if err != nil {
				yield(title.Message{}, err)
				return
			}
			text, err := s.openingText(ctx, e)
			if !yield(title.Message{Role: e.Role, Text: text}, err) || err != nil {
				return
			}
		}
	}
}

// openingText is Entry.Text, but for a large text it is the start.
func (s *Store) openingText(ctx context.Context, e *Entry) (string, error) {
	if e.message != nil || e.Erased || e.Body != nil || !strings.HasPrefix(e.Type, "text/") {
		return e.Text(), nil
	}
	r, err := s.Body(ctx, e.Content)
	if err != nil {
		return "", err
	}
	start, err := io.ReadAll(io.LimitReader(r, openingBytes))
	return string(start), err
}
