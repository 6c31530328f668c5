package place

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxCopies is how many messages are examined to find a copy. Content smaller than leastSought bytes occurs in too
// many messages to be searched for.
const (
	maxCopies   = 64
	leastSought = 16
)

// copies finds the thread that a session was copied from. This is the only lookup across threads, and it never
// returns a thread of another user.
type copies struct {
	ctx     context.Context
	from    backend.Reader
	user    string
	accepts func(*structure.Thread) bool
}

// FindCopy returns a thread of the user that has a message with the given id: the original of a session that was
// resumed or copied elsewhere. It returns nil if there is none. Only threads for which accepts returns true are considered.
func FindCopy(ctx context.Context, from backend.Reader, user, id string, accepts func(*structure.Thread) bool) (*structure.Thread, error) {
	c, seen := copies{ctx, from, user, accepts}, 0
	for found, err := range from.Find(ctx, id, structure.ThreadID{}, backend.Found{}) {
		if err != nil {
			return nil, err
		}
		if t, err := c.thread(found.Home); t != nil || err != nil {
			return t, err
		}
		if seen++; seen == maxCopies {
			break
		}
	}
	return nil, nil
}

// FindAnswer is like FindCopy for a message whose body states an id from its provider, whatever the id and time of
// its line.
func FindAnswer(ctx context.Context, from backend.Reader, user string, m *Message, accepts func(*structure.Thread) bool) (*structure.Thread, error) {
	c := copies{ctx, from, user, accepts}
	var found *structure.Thread
	ok, err := c.answer(m, func(_ structure.SpanRef, home structure.Home) (bool, error) {
		var err error
		found, err = c.thread(home)
		return found != nil, err
	})
	if !ok || err != nil {
		return nil, err
	}
	return found, nil
}

// HasAnswer reports whether a history has, in another thread than the given one, a message whose body states the same
// provider id, whatever the id and time of its line.
func HasAnswer(ctx context.Context, from backend.Reader, history backend.Reach, own structure.Home, m *Message) (bool, error) {
	c := copies{ctx: ctx, from: from}
	return c.answer(m, func(at structure.SpanRef, home structure.Home) (bool, error) {
		return history.Has(at) && home != own, nil
	})
}

// answer looks for a message that says the same among the spans that accept allows.
func (c *copies) answer(m *Message, accept func(structure.SpanRef, structure.Home) (bool, error)) (bool, error) {
	sought, size := largestContent(m)
	if size < leastSought {
		return false, nil
	}
	seen := 0
	for used, err := range c.from.Where(c.ctx, sought) {
		if err != nil {
			return false, err
		}
		if seen++; seen > maxCopies {
			break
		}
		run, err := c.from.Run(c.ctx, used.Span.Run)
		if errors.Is(err, backend.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		accepted, err := accept(used.Span, run.Home)
		if err != nil {
			return false, err
		}
		if !accepted {
			continue
		}
		if same, err := c.says(used.Span, m); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// says reports whether a span says the same as a message.
func (c *copies) says(at structure.SpanRef, m *Message) (bool, error) {
	for step, err := range c.from.Path(c.ctx, at, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil || saysTheSame(m.Usages, step.Span.Usages, false) {
			return err == nil, err
		}
	}
	return false, nil
}

// largestContent returns the largest content of a message whose bytes it has, and its size, -1 if there is none.
func largestContent(m *Message) (largest content.ID, size int) {
	size = -1
	for i := range m.Usages {
		for k := range m.Contents {
			if c := &m.Contents[k]; c.ID == m.Usages[i].Content && c.Block != nil && len(c.Block.Body) > size {
				largest, size = c.ID, len(c.Block.Body)
			}
		}
	}
	return largest, size
}

// thread returns the thread of a home, or nil if it is not considered.
func (c *copies) thread(home structure.Home) (*structure.Thread, error) {
	t, err := c.from.Thread(c.ctx, home.Thread)
	if errors.Is(err, backend.ErrNotFound) {
		return nil, nil
	}
	if err != nil || t.UserID != c.user || t.Home() != home || !c.accepts(t) {
		return nil, err
	}
	return t, nil
}
