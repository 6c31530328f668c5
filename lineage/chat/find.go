package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// findForeign finds the message with an id that foreignID returned, in any thread.
func (s *state) findForeign(ctx context.Context, id string) (backend.Found, bool, error) {
	first, rest, _ := strings.Cut(id, "/")
	thread, noThread := structure.ParseID[structure.ThreadID](first)
	at, noSpan := structure.ParseSpanRef(rest)
	if noThread != nil || noSpan != nil || at.IsZero() || foreignID(thread, at) != id {
		return backend.Found{}, false, nil
	}
	t, err := s.from.Thread(ctx, thread)
	if err != nil {
		return backend.Found{}, false, ignoreNotFound(err)
	}
	if visible, err := s.committed().sees(ctx, t, at); err != nil || !visible {
		return backend.Found{}, false, err
	}
	known, err := s.reading(t).IDAt(ctx, at)
	return backend.Found{Home: t.Home(), Span: at}, err == nil && known == Ref(id), err
}

// sees reports whether a span is in a chat. If the span neither belongs to the thread nor is on the active branch, it
// reads all contexts and checkpoints of the thread.
func (s *state) sees(ctx context.Context, t *structure.Thread, at structure.SpanRef) (bool, error) {
	run, err := s.from.Run(ctx, at.Run)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if t.Keeps && run.Home == t.Home() {
		last, err := s.from.Last(ctx, at.Run)
		return at.Seq <= last.Seq, err
	}
	active, err := s.from.Context(ctx, t.Active)
	if err != nil && !isNotFound(err) {
		return false, err
	}
	visible, err := structure.IsAncestor(at, active.Tip, s.runs(ctx))
	if visible || err != nil {
		return visible, err
	}
	reach, err := backend.ReachOf(ctx, s.from, t)
	return reach.Has(at), err
}

// find returns the span of the message with an id in a thread, and whether there is one.
func (s *state) find(ctx context.Context, id string, in structure.ThreadID) (structure.SpanRef, bool, error) {
	if in.IsZero() {
		return structure.SpanRef{}, false, nil
	}
	found, err := backend.FindFirst(ctx, s.from, id, in)
	if isNotFound(err) {
		var known bool
		found, known, err = s.findForeign(ctx, id)
		if !known || found.Home.Thread != in {
			return structure.SpanRef{}, false, err
		}
	}
	return found.Span, err == nil, err
}

// messageIn returns the span of a message of a chat, and whether there is one. The thread of the chat may not exist.
// If only another chat has the id, the error is ErrOtherChat.
func (s *state) messageIn(ctx context.Context, chatID string, thread structure.ThreadID, id string) (structure.SpanRef, bool, error) {
	at, known, err := s.find(ctx, id, thread)
	if known || err != nil {
		return at, known, err
	}
	_, elsewhere, err := s.findForeign(ctx, id)
	if !elsewhere && err == nil {
		_, err = backend.FindFirst(ctx, s.from, id, structure.ThreadID{})
		elsewhere, err = err == nil, ignoreNotFound(err)
	}
	if elsewhere {
		err = &Error{Subject: SubjectMessage, ID: id, ChatID: chatID, Err: ErrOtherChat}
	}
	return structure.SpanRef{}, false, err
}

// position returns the span of a message that a change refers to.
func (c *openChat) position(ctx context.Context, id Ref) (structure.SpanRef, error) {
	if id == "" {
		return structure.SpanRef{}, nil
	}
	at, known, err := c.messageIn(ctx, IDOfThread(c.t), c.t.ID, string(id))
	if err == nil && !known {
		err = c.refuse(string(id), ErrNotFound)
	}
	return at, err
}

// refuse returns an error about a message that the caller passed.
func (c *openChat) refuse(id string, err error) error {
	return &Error{Subject: SubjectMessage, ID: id, ChatID: IDOfThread(c.t), Err: err}
}

// readingOf returns a reader of a chat and the span of one of its messages. The reader is nil if there is no such
// message.
func (s *state) readingOf(ctx context.Context, chatID, id string) (*ThreadReader, structure.SpanRef, error) {
	var in structure.ThreadID
	t, err := s.thread(ctx, chatID)
	if err == nil {
		in = t.ID
	} else if !isNotFound(err) {
		return nil, structure.SpanRef{}, err
	}
	at, known, err := s.messageIn(ctx, chatID, in, id)
	if err != nil || !known {
		return nil, structure.SpanRef{}, err
	}
	return s.reading(t), at, nil
}

// source returns the content that a message was derived from, zero for none.
func (c *openChat) source(ctx context.Context, id string) (content.ID, error) {
	if id == "" {
		return content.ID{}, nil
	}
	at, err := c.position(ctx, Ref(id))
	if err == nil {
		return c.contentAt(ctx, at)
	}
	if parsed, notContent := content.ParseID(id); notContent == nil && isMissing(err) {
		return parsed, nil
	}
	return content.ID{}, err
}

// isMissing reports whether an error says that a message is not in a chat.
func isMissing(err error) bool { return isNotFound(err) || errors.Is(err, ErrOtherChat) }

// contentAt returns the content of the message at a span.
func (s *state) contentAt(ctx context.Context, at structure.SpanRef) (content.ID, error) {
	step, err := s.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return content.ID{}, err
	}
	return step.Span.Usages[0].Content, nil
}

// followed reports whether a message of the chat comes after the one at a span.
func (s *state) followed(ctx context.Context, r *ThreadReader, at structure.SpanRef) (bool, error) {
	from, forks := s.from, 0
	if stage, inside := from.(*write.Stage); inside {
		from = staged{stage}
	}
	for next, err := range backend.Follows(ctx, from, at) {
		if err != nil {
			return false, err
		}
		home, err := r.isHome(ctx, next.Run)
		if err != nil || home && r.thread.Keeps {
			return err == nil, err
		}
		if forks++; forks == mostForks {
			break
		}
	}
	if forks == 0 {
		return false, nil
	}
	// A message that follows belongs to the chat if one of its contexts or checkpoints leads there.
	reach, err := backend.ReachOf(ctx, s.committed().from, r.thread)
	for _, e := range reach {
		if e.Run.Parent == at || e.Run.ID == at.Run && e.Last > at.Seq {
			return true, nil
		}
	}
	return false, err
}

// mostForks limits the runs after a message that are examined one by one.
const mostForks = 1000
