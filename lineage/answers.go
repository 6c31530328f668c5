package lineage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// Retry creates one more alternative to a span of the context's history, for example to ask for an
// answer again. If the context has a set of alternatives there, the new one joins it. It is
// extended and chosen like those of Alternatives.
func (c *Context) Retry(ctx context.Context, span SpanRef, o Overrides) (*Context, error) {
	if err := checkSettings(&o, nil); err != nil {
		return nil, err
	}
	var created ContextID
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
		created = b.NewContext(fork).ID
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Context{store: c.store, id: created}, nil
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

// setAt returns the set of alternatives at a position of the context, including those that are
// still empty; zero if there is none.
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

// Alternative is one of several continuations at the same position: an answer, a retried answer, an
// edited message or a branch.
type Alternative struct {
	// Entry is its first entry. If Current is set, the entry is on the context's own history.
	Entry   *Entry
	Current bool
	// Tip is the end of the alternative. MoveTo(Tip) makes a context continue it.
	Tip SpanRef
	// Model is the model that answered, empty if unknown.
	Model string
	// Input and Output are the token counts of the answer, which ends before the next user message. If Reported is
	// set, they are the sums of Answers. Otherwise Output is an estimate.
	Input, Output int
	Reported      bool
	// Answers are the answers of models as stated by the messages of the alternative, each once: see message.Usage.
	Answers []message.Answer
	// Took is the time from the message before the alternative to the end of the answer.
	Took time.Duration
}

// maxAnswerSpans limits how much of an answer is read to measure it.
const maxAnswerSpans = 1000

// AlternativesTo returns the continuations that histories of the context's thread have at the position before span,
// in the order of their creation. The continuation with span is one of them. Alternatives that are still empty are
// missing: see Children. A history that a subagent began is not an alternative to the first message of its parent.
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
	var promptTime time.Time
	if !at.IsZero() {
		entries, err := c.store.Span(ctx, at)
		if err != nil {
			return nil, err
		}
		promptTime = entries[len(entries)-1].CreatedAt
	}
	for i := range alternatives {
		a := &alternatives[i]
		if a.Current = a.Entry.Span == span; a.Current {
			a.Tip = tip
		}
		if err := c.store.measureAnswer(ctx, a, promptTime); err != nil {
			return nil, err
		}
	}
	return alternatives, nil
}

// Continuations returns the spans that directly follow a position on histories of the context's thread, in the order
// of their creation. It is AlternativesTo without the costs of the answers. If most is not 0 and there are more, it
// returns none, without reading them all.
func (c *Context) Continuations(ctx context.Context, at SpanRef, most int) ([]SpanRef, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return nil, err
	}
	spans, err := c.store.following(ctx, &state, at, most)
	if err != nil || len(spans) < 2 {
		return spans, err
	}
	if most > 0 && len(spans) > most {
		return nil, nil
	}
	commits := make(map[SpanRef]uint64, len(spans))
	for _, span := range spans {
		entries, err := c.store.Span(ctx, span)
		if err != nil {
			return nil, err
		}
		commits[span] = entries[0].Commit
	}
	slices.SortStableFunc(spans, func(a, b SpanRef) int { return cmp.Compare(commits[a], commits[b]) })
	return spans, nil
}

// alternatives returns the continuations after a position in the context's thread.
func (c *Context) alternatives(ctx context.Context, at SpanRef) ([]Alternative, error) {
	spans, err := c.Continuations(ctx, at, 0)
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
	return found, nil
}

// following returns the spans directly after a position that belong to the thread of a context. If most is not 0, it
// may stop when there are more.
func (s *Store) following(ctx context.Context, head *backend.Context, at SpanRef, most int) (found []SpanRef, err error) {
	if at.IsZero() {
		return s.beginnings(ctx, head)
	}
	for span, err := range s.Follows(ctx, at) {
		if err != nil {
			return nil, err
		}
		run, err := s.engine.Run(ctx, span.Run)
		if err != nil {
			return nil, err
		}
		if run.Home.Thread != head.Thread {
			continue
		}
		if found = append(found, span); most > 0 && len(found) > most {
			break
		}
	}
	return found, nil
}

// measureAnswer sets Model, token counts and Took of an alternative.
func (s *Store) measureAnswer(ctx context.Context, a *Alternative, promptTime time.Time) error {
	origin, _, err := s.Author(ctx, a.Entry)
	if err != nil {
		return err
	}
	a.Model = origin.ModelID
	first := a.Entry.Position
	last := a.Entry
	estimate := 0
	for e, err := range s.History(ctx, a.Tip, Window{From: first, To: first + maxAnswerSpans - 1}) {
		if err != nil {
			return err
		}
		if e.Position > first && e.Kind == Message && e.Role == "user" {
			break
		}
		last = e
		estimate += EstimateTokens(e.Excerpt())
		a.Answers = message.Once(a.Answers, message.Usage(message.Record{Body: e.Body, Role: e.Role, Model: e.Origin.ModelID, Metadata: e.Metadata})...)
	}
	for i := range a.Answers {
		input, output := a.Answers[i].Tokens.Sums()
		a.Input, a.Output, a.Reported = a.Input+int(input), a.Output+int(output), true
	}
	if !a.Reported {
		a.Output = estimate
	}
	if !promptTime.IsZero() {
		a.Took = max(last.CreatedAt.Sub(promptTime), 0)
	}
	return nil
}
