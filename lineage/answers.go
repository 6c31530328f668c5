package lineage

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Retry offers one more alternative to a span of the context's history, such as an answer that is to
// be asked for again. It is in the set that was offered there, if there is one, and is filled and
// chosen like those of Alternatives.
func (c *Context) Retry(ctx context.Context, span SpanRef, o Overrides) (*Context, error) {
	if err := checkSettings(&o, nil); err != nil {
		return nil, err
	}
	var made ContextID
	err := c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		before, err := c.before(ctx, state.Tip, span)
		if err != nil {
			return err
		}
		fork := forked(&state.Context, &ForkOptions{At: before, Empty: before.IsZero(), Overrides: o})
		if fork.Set, err = c.setAt(ctx, before); err != nil {
			return err
		}
		if fork.Set.IsZero() {
			fork.Set = b.SpanSet(before, 1)
		}
		made = b.NewContext(fork).ID
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Context{store: c.store, id: made}, nil
}

// before returns the position before a span of the history that ends at tip.
func (c *Context) before(ctx context.Context, tip, span SpanRef) (SpanRef, error) {
	runs := c.store.runs(ctx)
	on, err := structure.IsAncestor(span, tip, runs)
	if err != nil {
		return SpanRef{}, err
	}
	if !on || span.IsZero() {
		return SpanRef{}, subjectError("span", span.String(), ErrInvalid, "it is not on the history of context "+c.id.String())
	}
	position, err := structure.Position(span, runs)
	if err != nil {
		return SpanRef{}, err
	}
	return structure.At(tip, position-1, runs)
}

// setAt returns the set that was offered to the context at a position: that of an alternative
// there, filled or not; zero if there is none.
func (c *Context) setAt(ctx context.Context, at SpanRef) (structure.SpanSetID, error) {
	for child, err := range c.store.engine.Children(ctx, c.id, ContextID{}) {
		if err != nil || child.Base == at && !child.Set.IsZero() {
			return child.Set, err
		}
	}
	alternatives, err := c.alternatives(ctx, at)
	for _, a := range alternatives {
		if !a.Entry.Set.IsZero() {
			return a.Entry.Set, err
		}
	}
	return structure.SpanSetID{}, err
}

// Alternative is one of the ways in which histories go on from a position: an answer, one that
// was tried again, an edited message, a branch.
type Alternative struct {
	// Entry is the first entry of it, in the span that it begins with. Its Span is on the context's own
	// history if Current is set.
	Entry   *Entry
	Current bool
	// Tip is where its line ends. MoveTo there makes a context go on with it.
	Tip SpanRef
	// Model is the model that answered, if that is known.
	Model string
	// Input and Output are the tokens that the answer took: as its messages report them (a member
	// usage, or such counts, in the metadata), or by estimate of what is in it. Reported says which. The
	// answer ends before the next message of a user.
	Input, Output int
	Reported      bool
	// Took is the time from what it answers to its end.
	Took time.Duration
}

// mostOfAnswer is how many spans of an answer are looked at.
const mostOfAnswer = 1000

// AlternativesTo returns the ways in which histories of the context's thread go on from the position before
// a span of its history, that span included, in the order in which they were begun. An alternative that
// is still empty is not among them: see Children. A history that a subagent began is no alternative to the
// first message of its parent's.
func (c *Context) AlternativesTo(ctx context.Context, span SpanRef) ([]Alternative, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	at, err := c.before(ctx, tip, span)
	if err != nil {
		return nil, err
	}
	alternatives, err := c.alternatives(ctx, at)
	if err != nil {
		return nil, err
	}
	var asked time.Time
	if !at.IsZero() {
		entries, err := c.store.Span(ctx, at)
		if err != nil {
			return nil, err
		}
		asked = entries[len(entries)-1].CreatedAt
	}
	for i := range alternatives {
		a := &alternatives[i]
		if a.Current = a.Entry.Span == span; a.Current {
			a.Tip = tip
		}
		if err := c.store.measureAnswer(ctx, a, asked); err != nil {
			return nil, err
		}
	}
	return alternatives, nil
}

// alternatives returns what follows a position in the context's thread.
func (c *Context) alternatives(ctx context.Context, at SpanRef) ([]Alternative, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return nil, err
	}
	spans, err := c.store.following(ctx, &state, at)
	if err != nil {
		return nil, err
	}
	var found []Alternative
	for _, span := range spans {
		entries, err := c.store.Span(ctx, span)
		if err != nil {
			return nil, err
		}
		last, err := c.store.engine.Last(ctx, span.Run)
		if err != nil {
			return nil, err
		}
		found = append(found, Alternative{Entry: entries[0], Tip: last})
	}
	slices.SortStableFunc(found, func(a, b Alternative) int { return cmp.Compare(a.Entry.Commit, b.Entry.Commit) })
	return found, nil
}

// following returns the spans that come right after a position and belong to a context's thread.
func (s *Store) following(ctx context.Context, of *backend.Context, at SpanRef) (found []SpanRef, err error) {
	if at.IsZero() {
		return s.beginnings(ctx, of)
	}
	for span, err := range s.Follows(ctx, at) {
		if err != nil {
			return nil, err
		}
		run, err := s.engine.Run(ctx, span.Run)
		if err != nil {
			return nil, err
		}
		if run.Home.Thread == of.Thread {
			found = append(found, span)
		}
	}
	return found, nil
}

// measureAnswer finds out which model an alternative is of and what it took.
func (s *Store) measureAnswer(ctx context.Context, a *Alternative, asked time.Time) error {
	origin, _, err := s.Author(ctx, a.Entry)
	if err != nil {
		return err
	}
	a.Model = origin.ModelID
	first := a.Entry.Position
	last := a.Entry
	estimate := 0
	for e, err := range s.History(ctx, a.Tip, Window{From: first, To: first + mostOfAnswer - 1}) {
		if err != nil {
			return err
		}
		if e.Position > first && e.Kind == Message && e.Role == "user" {
			break
		}
		last = e
		estimate += EstimateTokens(e.Text())
		if input, output, ok := reportedUsage(e); ok {
			a.Input, a.Output, a.Reported = a.Input+input, a.Output+output, true
		}
	}
	if !a.Reported {
		a.Output = estimate
	}
	if !asked.IsZero() {
		a.Took = max(last.CreatedAt.Sub(asked), 0)
	}
	return nil
}

// reportedUsage returns the tokens that an entry says it took, in its metadata or that of its message.
func reportedUsage(e *Entry) (input, output int, ok bool) {
	documents := [][]byte{e.Metadata}
	if e.Body != nil && e.said != nil {
		documents = append(documents, rawjson.Last(e.Body, "metadata"), e.Body)
	}
	for _, document := range documents {
		for _, counts := range [][]byte{rawjson.Last(document, "usage"), rawjson.Last(document, "totalUsage"), document} {
			input, okInput := count(counts, "input_tokens", "inputTokens", "prompt_tokens", "promptTokens")
			output, okOutput := count(counts, "output_tokens", "outputTokens", "completion_tokens", "completionTokens")
			if okInput || okOutput {
				return input, output, true
			}
		}
	}
	return 0, 0, false
}

// count returns the number under the first of some names that an object has.
func count(object []byte, names ...string) (n int, ok bool) {
	for _, name := range names {
		if value := rawjson.Last(object, name); value != nil && json.Unmarshal(value, &n) == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}
