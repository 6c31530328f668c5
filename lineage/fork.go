package lineage

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// ForkOptions say how a fork differs from what it is forked from.
type ForkOptions struct {
	// At is where the fork stands; the zero ref is where the context stands. It
	// need not lie on the context's history.
	At SpanRef
	// Empty makes the fork start with an empty history instead.
	Empty bool
	// Sees chooses which entries of the history up to there the fork starts with; nil is all
	// of them, which costs nothing. What it chooses has a history of its own but shares the
	// content: it costs a reference for each entry kept. The entries of one span stay together.
	// They have no source ids of the caller's: such an id is that of one message in its thread.
	Sees *Filter
	// Thread is the thread that the fork belongs to; the zero id is the thread of
	// the context. A fork into another thread costs the same.
	Thread ThreadID
	// Overrides are what the fork sets differently from what it inherits.
	Overrides Overrides
	// Metadata is JSON of the caller's, kept byte for byte.
	Metadata []byte
}

// Fork makes a context that stands where this one does, or at any span, and
// shares its history. It costs one small record whatever the history holds. The fork
// has no name until Thread.NameBranch gives it one; Thread.CreateBranch forks under a
// name. A subagent is a fork as well: it works on its own, with overrides of its own, and
// reports back with Return.
func (c *Context) Fork(ctx context.Context, o ForkOptions) (*Context, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	if o.Sees != nil && !o.Empty {
		return c.forkSome(ctx, o)
	}
	f := c.store.forkings.Get().(*forking)
	*f = forking{context: c, options: o}
	b := c.store.writer.Batch()
	defer c.store.writer.Release(b)
	_, err := c.store.writer.Do(ctx, b, f)
	made := f.made
	*f = forking{}
	c.store.forkings.Put(f)
	if err != nil {
		return nil, err
	}
	return &Context{store: c.store, id: made}, nil
}

// forking forks a context.
type forking struct {
	context *Context
	options ForkOptions
	made    ContextID
}

// Fill implements write.Change.
func (f *forking) Fill(ctx context.Context, b *write.Batch, t write.Try) error {
	state, behind, err := f.context.store.recently(ctx, f.context.id, t.Number == 0)
	if err != nil {
		return err
	}
	if behind && f.options.At.IsZero() && !f.options.Empty {
		b.Expect(state.ID, state.Tip)
	}
	f.made = b.NewContext(forked(&state.Context, &f.options)).ID
	return nil
}

// forked returns a fork of a context.
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

// Filter chooses entries of a history. An entry is kept if every condition that
// is set holds. The zero Filter keeps all.
type Filter struct {
	// Window is the range looked at; its Last counts spans before other
	// conditions are tested.
	Window Window
	// Since and Until keep what was said not before the one and before the other. Zero
	// times are no bounds. Times need not rise along a history, so the whole Window is read.
	Since, Until time.Time
	// Roles keeps messages of these roles.
	Roles []string
	// Keep, when not nil, keeps the entries it returns true for.
	Keep func(*Entry) bool
}

// forkSome makes a fork that starts with a history of chosen entries.
func (c *Context) forkSome(ctx context.Context, o ForkOptions) (*Context, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return nil, err
	}
	steps, err := c.store.choose(ctx, forked(&state.Context, &o).At, *o.Sees)
	if err != nil {
		return nil, err
	}
	o.Empty = true
	fork := forked(&state.Context, &o)
	var made ContextID
	err = c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		is := b.NewContext(fork)
		if made = is.ID; len(steps) == 0 {
			return nil
		}
		home, _, err := c.store.home(ctx, is)
		if err == nil {
			goOnFrom(b, is, SpanRef{}, home, nil, steps, true)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Context{store: c.store, id: made}, nil
}

// choose returns the usages of a history that pass a filter, by span. They can be
// added elsewhere: ids of the caller's stay with the originals.
func (s *Store) choose(ctx context.Context, at SpanRef, f Filter) ([][]structure.Usage, error) {
	var usages [][]structure.Usage
	var last SpanRef
	for e, err := range s.History(ctx, at, f.Window) {
		if err != nil {
			return nil, err
		}
		if !f.keeps(e) {
			continue
		}
		item := e.Item()
		if e.Span != last {
			usages, last = append(usages, nil), e.Span
		}
		n := len(usages) - 1
		usages[n] = appendUsages(usages[n], &item, new(content.BlockOrigin))
	}
	return usages, nil
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

// Return appends a subagent's result to its parent and returns the span there.
// The result's origin leads back: its source id names this context and where it
// stood, and its parent content is the last thing said here, unless they are set.
func (c *Context) Return(ctx context.Context, result Item) (SpanRef, error) {
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return SpanRef{}, err
	}
	if state.Parent.IsZero() {
		return SpanRef{}, subjectError("context", c.id.String(), ErrInvalid, "it has no parent to return to")
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
	spans, err := parent.Extend(ctx, result)
	if err != nil {
		return SpanRef{}, err
	}
	return spans[0], nil
}

// Send adds an entry of this context's store to the history of another context of that
// store: one block, used in both. The usage there says where it came from.
func (c *Context) Send(ctx context.Context, to *Context, e *Entry) (SpanRef, error) {
	if err := c.store.sameStore(to); err != nil {
		return SpanRef{}, err
	}
	item := e.Item()
	item.CreatedAt = c.store.timestamp()
	item.Origin.SourceID = contextSource(c.id, e.Span)
	spans, err := to.Extend(ctx, item)
	if err != nil {
		return SpanRef{}, err
	}
	return spans[0], nil
}

// Say adds a message to this context and, as the same block, to another: what one
// agent tells another. Both or neither get it. They must be of one store.
func (c *Context) Say(ctx context.Context, to *Context, said, heard Item) (here, there SpanRef, err error) {
	if err := c.store.sameStore(to); err != nil {
		return SpanRef{}, SpanRef{}, err
	}
	if to.id == c.id {
		return SpanRef{}, SpanRef{}, subjectError("context", c.id.String(), ErrInvalid, "a context cannot talk to itself")
	}
	var ours, theirs material
	err = c.store.change(ctx, func(b *write.Batch, t write.Try) error {
		if err := ours.prepare(ctx, c.store, []Item{said}, true, b, t); err != nil {
			return err
		}
		if t.Number == 0 {
			heard.Body, heard.Reader, heard.Content, heard.parts = nil, nil, ours.usages[0].Content, ours.usages
			if heard.Origin.SourceID == "" {
				heard.Origin.SourceID = contextSource(c.id, SpanRef{})
			}
			if err := theirs.take(ctx, c.store, []Item{heard}, true, b.Time()); err != nil {
				return err
			}
		}
		from, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		target, err := c.store.engine.Context(ctx, to.id)
		if err != nil {
			return err
		}
		home, own, err := c.store.home(ctx, &from.Context)
		if err != nil {
			return err
		}
		here = goOn(b, &from.Context, home, ours.content, ours.steps, t.Fresh || !own || from.Tip == target.Tip)[0]
		if home, own, err = c.store.home(ctx, &target.Context); err != nil {
			return err
		}
		there = goOn(b, &target.Context, home, nil, theirs.steps, t.Fresh || !own)[0]
		return nil
	})
	if err != nil {
		return SpanRef{}, SpanRef{}, takenSourceID(err, append(ours.steps, theirs.steps...))
	}
	return here, there, nil
}

// contextSource is the source id that leads to a context and a place in it.
func contextSource(id ContextID, at SpanRef) string {
	if at.IsZero() {
		return "lineage:context/" + id.String()
	}
	return "lineage:context/" + id.String() + "@" + at.String()
}
