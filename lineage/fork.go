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
	// Where the context has summaries of what the fork does not see, these come in its place: each is a
	// system message named summary.
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

// choose returns the usages of a history that pass a filter, by span. They can be
// added elsewhere: ids of the caller's stay with the originals.
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
