package lineage

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// EditOptions configure an edit.
type EditOptions struct {
	// Index is the Entry.Index of the entry to edit, if the span has several.
	Index int
	// Replay, when not nil, is called for each later entry of the history, in order. It reports whether the fork gets
	// a copy of the entry. Typically user messages are replayed and the model answers again. Copies share the content
	// and have no source id, because source ids are unique in a thread. See Replaying.
	Replay func(*Entry) bool
	// Thread, Overrides and Metadata are as in ForkOptions.
	Thread    ThreadID
	Overrides Overrides
	Metadata  []byte
}

// Marks are keys of metadata that programs give to contexts, so that others can show what a context is.
const (
	EditMark     = `{"made_by":"edit"}`
	SubagentMark = `{"made_by":"subagent"}`
)

// Replaying returns a function for EditOptions.Replay that selects all entries for "all", else the messages of a role.
// For an empty text it is nil.
func Replaying(what string) func(*Entry) bool {
	switch what {
	case "":
		return nil
	case "all":
		return func(*Entry) bool { return true }
	}
	return func(e *Entry) bool { return e.Kind == Message && e.Role == what }
}

// Edit creates a fork of the context in which one entry is replaced. The new content is recorded as derived from the
// old one. The context itself does not change. An edited document revision gets the next number unless one is given.
// A replayed revision whose number is taken gets the next one. The fork has no name until Thread.NameBranch.
func (c *Context) Edit(ctx context.Context, span SpanRef, edited Item, o EditOptions) (*Context, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	if edited.with != nil {
		return nil, errTogether
	}
	state, err := c.store.engine.Context(ctx, c.id)
	if err != nil {
		return nil, err
	}
	position, before, err := c.positionOf(ctx, span, state.Tip)
	if err != nil {
		return nil, err
	}
	var replayed chosenSteps
	if o.Replay != nil {
		replayed, err = c.store.choose(ctx, state.Tip, Filter{Window: Window{From: position + 1}, Keep: o.Replay})
		if err != nil {
			return nil, err
		}
	}
	created := forked(&state.Context, &ForkOptions{
		At: before, Empty: before.IsZero(), Thread: o.Thread, Overrides: o.Overrides, Metadata: o.Metadata,
	})
	var m material
	var id ContextID
	items, err := c.edited(ctx, span, edited, o)
	if err == nil {
		items, err = c.store.revisedAfter(ctx, before, items)
	}
	if err == nil {
		err = replayed.renumber(ctx, c.store, before, items)
	}
	if err != nil {
		return nil, err
	}
	err = c.store.change(ctx, func(b *write.Batch, t write.Try) error {
		if err := m.prepare(ctx, c.store, items, b, t); err != nil {
			return err
		}
		made := b.NewContext(created)
		id = made.ID
		home, _, err := c.store.home(ctx, made)
		if err != nil {
			return err
		}
		const fresh = true // in a new run
		appendStepsAfter(b, made, made.Tip, home, m.content, append(m.steps, replayed.usages()...), fresh)
		return nil
	})
	if err != nil {
		return nil, takenSourceID(err, m.steps)
	}
	return &Context{store: c.store, id: id}, nil
}

// positionOf returns the position of a span in the history that ends at tip, and the span before it.
func (c *Context) positionOf(ctx context.Context, span, tip SpanRef) (position uint64, before SpanRef, err error) {
	runs := c.store.runs(ctx)
	if on, err := structure.IsAncestor(span, tip, runs); err != nil {
		return 0, before, err
	} else if !on || span.IsZero() {
		return 0, before, subjectError("span", span.String(), ErrInvalid, "it is not on the history of context "+c.id.String())
	}
	if position, err = structure.Position(span, runs); err != nil {
		return 0, before, err
	}
	before, err = structure.At(tip, position-1, runs)
	return position, before, err
}

// edited returns the entries of the span with the edited one replaced.
func (c *Context) edited(ctx context.Context, span SpanRef, edited Item, o EditOptions) ([]Item, error) {
	entries, err := c.store.Span(ctx, span)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(entries, func(e *Entry) bool { return e.Index == o.Index })
	if at < 0 {
		return nil, subjectError("span", span.String(), ErrInvalid, fmt.Sprintf("it has no entry with index %d", o.Index))
	}
	items := make([]Item, len(entries))
	for i, e := range entries {
		items[i] = e.Item()
	}
	old := entries[at]
	if edited.Kind == 0 {
		edited.Kind = old.Kind
	}
	if edited.Kind == old.Kind {
		// Unset fields of the edit keep their old values.
		inherit(&edited.Role, old.Role)
		inherit(&edited.Name, old.Name)
		inherit(&edited.Document, old.Document)
		inherit(&edited.Filename, old.Filename)
		if old.message == nil {
			inherit(&edited.Type, old.Type)
		}
		if edited.Kind == Document && edited.Revision == 0 {
			edited.Revision = old.Revision + 1
		}
	}
	if edited.Origin.ParentID.IsZero() {
		edited.Origin.ParentID = old.Content
	}
	items[at] = edited
	return flat([]Item{Together(items...)}), nil
}

// renumber gives document revisions a new number if their number has other content in the history up to tip, followed
// by items.
func (steps chosenSteps) renumber(ctx context.Context, s *Store, tip SpanRef, items []Item) error {
	if len(steps) == 0 || !hasDocuments(items) {
		return nil
	}
	var on documentIndex
	if err := on.advance(ctx, s, tip); err != nil {
		return err
	}
	for i := range items {
		if item := &items[i]; item.Kind == Document {
			on.put(item.Document, item.Revision, item.id())
		}
	}
	for _, step := range steps {
		for i := range step.usages {
			if u := &step.usages[i]; u.Kind == structure.DocumentUsage {
				u.Revision = on.numbered(u.Document, u.Revision, u.Content)
			}
		}
	}
	return nil
}

func inherit(s *string, from string) {
	if *s == "" {
		*s = from
	}
}
