package lineage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// ForkOptions configure a fork.
type ForkOptions struct {
	// At is the span that the fork points to, of any history. Default: the tip of the context.
	At SpanRef
	// Empty starts the fork with an empty history instead.
	Empty bool
	// Sees selects the entries of the history that the fork starts with. Default: all, which costs nothing. With a
	// filter, the fork gets a history of its own that shares the content, at the cost of one reference per entry.
	// Entries of one span stay together. They have no source ids, because source ids are unique in a thread. If a
	// summary covers only entries that the fork does not see, it is added in their place as a system message named
	// summary.
	Sees *Filter
	// Thread is the thread of the fork. Default: the thread of the context. A fork into another
	// thread costs the same.
	Thread ThreadID
	// Overrides are the fork's own settings; the rest is inherited.
	Overrides Overrides
	// Metadata is JSON of the caller, kept byte for byte.
	Metadata []byte
}

// Fork creates a context that points to the tip of this one, or to any span, and shares its history. It costs one
// small record, however long the history is. The fork has no name until Thread.NameBranch; Thread.CreateBranch
// creates one with a name. A subagent is a fork too: it works with its own overrides and reports back with Return.
func (c *Context) Fork(ctx context.Context, o ForkOptions) (*Context, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	if o.Sees != nil && !o.Empty {
		return c.forkSome(ctx, o)
	}
	f, _ := c.store.forkings.Get().(*forking)
	if f == nil {
		f = new(forking)
	}
	*f = forking{context: c, options: o}
	b := c.store.writer.Batch()
	defer c.store.writer.Release(b)
	_, err := c.store.writer.Do(ctx, b, f)
	created := f.created
	*f = forking{}
	c.store.forkings.Put(f)
	if err != nil {
		return nil, err
	}
	return &Context{store: c.store, id: created}, nil
}

// forking is a change that forks a context.
type forking struct {
	context *Context
	options ForkOptions
	created ContextID
}

// Fill implements write.Change.
func (f *forking) Fill(ctx context.Context, b *write.Batch, t write.Try) error {
	state, behind, err := f.context.store.recentContext(ctx, f.context.id, t.Number == 0)
	if err != nil {
		return err
	}
	if behind && f.options.At.IsZero() && !f.options.Empty {
		b.Expect(state.ID, state.Tip)
	}
	f.created = b.NewContext(forked(&state.Context, &f.options)).ID
	return nil
}

// forked returns the new context of a fork.
func forked(parent *structure.Context, o *ForkOptions) write.Context {
	c := write.Context{Thread: o.Thread, Parent: parent.ID, At: o.At, Overrides: o.Overrides, Metadata: o.Metadata}
	switch {
	case o.Empty:
		c.At = SpanRef{}
	case o.At.IsZero():
		c.At = parent.Tip
	}
	if c.Thread.IsZero() {
		c.Thread = parent.Thread
	}
	return c
}

// Filter selects entries of a history that match all conditions set. The zero Filter matches all.
type Filter struct {
	// Window is the range of positions. Its Last counts spans before the other conditions are
	// applied.
	Window Window
	// Since and Until limit the time: from Since (included) to Until (excluded). Zero times are no
	// limits. Times need not increase along a history, so the whole Window is read.
	Since, Until time.Time
	// Roles selects messages with one of these roles.
	Roles []string
	// Keep, when not nil, reports whether to keep an entry.
	Keep func(*Entry) bool
}

// choose returns the usages of a history that match a filter, by span, without source ids.
func (s *Store) choose(ctx context.Context, at SpanRef, f Filter) (chosenSteps, error) {
	var steps chosenSteps
	for e, err := range s.History(ctx, at, f.Window) {
		if err != nil {
			return nil, err
		}
		if !f.keeps(e) {
			continue
		}
		item := e.Item()
		if len(steps) == 0 || steps[len(steps)-1].position != e.Position {
			steps = append(steps, chosenStep{position: e.Position})
		}
		last := &steps[len(steps)-1]
		last.usages = appendUsages(last.usages, &item, new(content.BlockOrigin))
	}
	return steps, nil
}

func (f *Filter) keeps(e *Entry) bool {
	if !f.Since.IsZero() && e.CreatedAt.Before(f.Since) || !f.Until.IsZero() && !e.CreatedAt.Before(f.Until) {
		return false
	}
	if len(f.Roles) > 0 {
		found := false
		for _, role := range f.Roles {
			found = found || e.Kind == Message && e.Role == role
		}
		if !found {
			return false
		}
	}
	return f.Keep == nil || f.Keep(e)
}

// forkSome creates a fork whose history has only the entries that o.Sees keeps.
func (c *Context) forkSome(ctx context.Context, o ForkOptions) (*Context, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return nil, err
	}
	at := forked(&state.Context, &o).At
	chosen, err := c.store.choose(ctx, at, *o.Sees)
	if err != nil {
		return nil, err
	}
	summaries, err := c.store.summariesOn(ctx, c.id, at)
	if err != nil {
		return nil, err
	}
	o.Empty = true
	fork := forked(&state.Context, &o)
	var created ContextID
	err = c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		made := b.NewContext(fork)
		if created = made.ID; len(chosen) == 0 && len(summaries) == 0 {
			return nil
		}
		steps := chosen.withSummaries(summaries, b)
		if len(steps) == 0 {
			return nil
		}
		home, _, err := c.store.home(ctx, made)
		if err == nil {
			const fresh = true // in a new run
			appendStepsAfter(b, made, SpanRef{}, home, nil, steps, fresh)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Context{store: c.store, id: created}, nil
}

// chosenSteps are selected steps of a history, each with its position there.
type chosenSteps []chosenStep

type chosenStep struct {
	position uint64
	usages   []structure.Usage
}

// usages returns the usages of each step.
func (steps chosenSteps) usages() (all [][]structure.Usage) {
	for _, s := range steps {
		all = append(all, s.usages)
	}
	return all
}

// withSummaries returns the steps. For each summary that covers only steps that were left out, it adds a message in
// their place.
func (steps chosenSteps) withSummaries(summaries []*SummaryInfo, b *write.Batch) (all [][]structure.Usage) {
	unseen := slices.DeleteFunc(slices.Clone(summaries), func(s *SummaryInfo) bool {
		return slices.ContainsFunc(steps, func(step chosenStep) bool { return s.First <= step.position && step.position <= s.Last })
	})
	for _, s := range widest(unseen) {
		for len(steps) > 0 && steps[0].position < s.First {
			all, steps = append(all, steps[0].usages), steps[1:]
		}
		item := Item{
			Kind: Message, Role: "system", Name: "summary", Content: s.Content, Type: content.TypeText, CreatedAt: b.Time(),
			Origin: Origin{Kind: content.OriginAssistant, ModelID: s.Model, SourceID: fmt.Sprint(summarySource, s.ID)},
		}
		all = append(all, appendUsages(nil, &item, new(content.BlockOrigin)))
	}
	return append(all, steps.usages()...)
}
