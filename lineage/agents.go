package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Result returns the last message of the context, to Return it with a role. It is ErrInvalid if there is none.
func (c *Context) Result(ctx context.Context, role string) (Item, error) {
	last, err := c.Last(ctx, 1)
	if err != nil {
		return Item{}, err
	}
	if len(last) == 0 {
		return Item{}, fmt.Errorf("context %s: %w: it has no message to return", c.id, ErrInvalid)
	}
	return last[len(last)-1].Result(role), nil
}

// Return appends the result of a subagent to its parent and returns the new span. Unless they are set,
// Origin.SourceID of the result names this context and its tip, and Origin.ParentID is the last content of this
// context.
//
// For the zero Item, the result consists of the context's own summaries since it was forked, joined in the order of
// the history. If there are none, the error is ErrNotFound.
//
// A result is returned once: if the tip has not changed, returning the same result again adds nothing and returns the
// first span. Results with a Reader are not compared.
func (c *Context) Return(ctx context.Context, result Item) (SpanRef, error) {
	if result.with != nil {
		return SpanRef{}, errTogether
	}
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return SpanRef{}, err
	}
	if state.Parent.IsZero() {
		return SpanRef{}, subjectError("context", c.id.String(), ErrInvalid, "it has no parent to return to")
	}
	if result.isZero() {
		if result, err = c.summarized(ctx, &state); err != nil {
			return SpanRef{}, err
		}
	}
	if result.Origin.SourceID == "" {
		result.Origin.SourceID = contextSource(c.id, state.Tip)
	}
	if result.Origin.ParentID.IsZero() && !state.Tip.IsZero() {
		entries, err := c.store.Span(ctx, state.Tip)
		if err != nil {
			return SpanRef{}, err
		}
		result.Origin.ParentID = entries[len(entries)-1].Content
	}
	parent := &Context{store: c.store, id: state.Parent}
	if result.Reader != nil {
		spans, err := parent.Extend(ctx, result)
		if err != nil {
			return SpanRef{}, err
		}
		return spans[0], nil
	}
	for try := 0; ; try++ {
		tip, err := parent.Tip(ctx)
		if err != nil {
			return SpanRef{}, err
		}
		returned, err := c.store.returned(ctx, tip, &result, state.Moved)
		if err != nil || returned != nil {
			return returned.span(), err
		}
		spans, err := parent.ExtendFrom(ctx, tip, result)
		if errors.Is(err, ErrTipMoved) && try < maxReturnTries {
			continue
		}
		if err != nil {
			return SpanRef{}, err
		}
		return spans[0], nil
	}
}

// maxReturnTries limits retries while others extend the parent.
const maxReturnTries = 1000

// returned returns the entry of a history that equals result and was added in the given commit or later, nil if there
// is none. It reads backwards in growing steps.
func (s *Store) returned(ctx context.Context, tip SpanRef, result *Item, after uint64) (*Entry, error) {
	last, err := s.Position(ctx, tip)
	if err != nil {
		return nil, err
	}
	for step := uint64(16); last > 0; step *= 2 {
		first := uint64(1)
		if last > step {
			first = last - step + 1
		}
		entries, err := s.collect(ctx, tip, Window{From: first, To: last})
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(entries) {
			if e.Commit < after {
				return nil, nil
			}
			if e.Origin.SourceID != result.Origin.SourceID || e.Role != result.Role {
				continue
			}
			if same, err := s.isSame(ctx, e, result); same || err != nil {
				return e, err
			}
		}
		last = first - 1
	}
	return nil, nil
}

// span returns the entry's span, or the zero ref if e is nil.
func (e *Entry) span() SpanRef {
	if e == nil {
		return SpanRef{}
	}
	return e.Span
}

// isSame reports whether an entry has the content of an item.
func (s *Store) isSame(ctx context.Context, e *Entry, item *Item) (bool, error) {
	switch {
	case !item.Content.IsZero():
		return e.Content == item.Content, nil
	case e.message == nil:
		return e.Content == content.Sum(item.Body), nil
	}
	body, err := s.Original(ctx, e)
	if errors.Is(err, ErrErased) {
		return false, nil
	}
	return err == nil && string(body) == string(item.Body), err
}

// summarized returns a result that joins the context's own summaries since it was forked.
func (c *Context) summarized(ctx context.Context, state *backend.Context) (Item, error) {
	before, err := c.store.Position(ctx, state.Base)
	if err != nil {
		return Item{}, err
	}
	summaries, err := c.store.summariesOn(ctx, c.id, state.Tip)
	if err != nil {
		return Item{}, err
	}
	var texts []string
	result := Item{Role: "assistant", Origin: Origin{Kind: content.OriginAssistant}}
	for _, s := range widest(summaries) {
		if s.Context == c.id && s.Last > before {
			texts = append(texts, s.Text)
			result.Origin.ModelID, result.Origin.ParentID = s.Model, s.Content
		}
	}
	if len(texts) == 0 {
		return Item{}, subjectError("context", c.id.String(), ErrNotFound, "no summaries of its own")
	}
	result.Body = []byte(strings.Join(texts, "\n\n"))
	return result, nil
}

// Send adds an item to the history of another context of the same store. Its origin refers to this
// context: to the span of the entry that the item was made from (Entry.Item), else to the context's
// tip. An item made from an entry shares its content and gets the current time. Inside
// Store.Update, adding a message here and sending it is one commit.
func (c *Context) Send(ctx context.Context, to *Context, item Item) (SpanRef, error) {
	if err := c.store.sameStore(to); err != nil {
		return SpanRef{}, err
	}
	at := item.at
	if at.IsZero() {
		var err error
		if at, err = c.Tip(ctx); err != nil {
			return SpanRef{}, err
		}
	} else {
		item.CreatedAt = time.Time{}
	}
	item.Origin.SourceID = contextSource(c.id, at)
	spans, err := to.Extend(ctx, item)
	if err != nil {
		return SpanRef{}, err
	}
	return spans[0], nil
}

// contextSource returns the source id that refers to a span of a context.
func contextSource(id ContextID, at SpanRef) string {
	if at.IsZero() {
		return "lineage:context/" + id.String()
	}
	return "lineage:context/" + id.String() + "@" + at.String()
}
