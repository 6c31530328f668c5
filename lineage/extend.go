package lineage

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Extend adds items to the history of the context, each as a span of its own,
// all or none of them, and returns the spans in order. Its cost does not depend
// on the history, the store or the number of forks.
func (c *Context) Extend(ctx context.Context, items ...Item) ([]SpanRef, error) {
	return c.extend(ctx, spansOf(items), nil)
}

// spansOf gives each item a span of its own.
func spansOf(items []Item) [][]Item {
	steps := make([][]Item, len(items))
	for i := range items {
		steps[i] = items[i : i+1 : i+1]
	}
	return steps
}

// ExtendFrom is Extend for a caller that must not add after something it has not
// seen: unless the context stands at tip, nothing is added and the error matches
// ErrTipMoved.
func (c *Context) ExtendFrom(ctx context.Context, tip SpanRef, items ...Item) ([]SpanRef, error) {
	return c.extend(ctx, spansOf(items), &tip)
}

// ExtendTogether adds the items as one span: one step of the history with several
// usages, such as a message and the files that came with it.
func (c *Context) ExtendTogether(ctx context.Context, items ...Item) (SpanRef, error) {
	spans, err := c.extend(ctx, [][]Item{items}, nil)
	if err != nil {
		return SpanRef{}, err
	}
	return spans[0], nil
}

func (c *Context) extend(ctx context.Context, steps [][]Item, expected *SpanRef) ([]SpanRef, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		content, usages, err := c.store.usages(ctx, steps)
		if err != nil {
			return nil, err
		}
		lock := c.store.lockContext(c.id)
		spans, err := c.store.append(ctx, c.id, content, usages, expected)
		lock.Unlock()
		if !isChunkGone(err) || try == mostTries || !repeatable(steps) {
			return spans, err
		}
	}
}

// mostTries is how often a body is stored that collections take pieces of before
// they are used.
const mostTries = 5

// isChunkGone reports whether a piece of a body, known or stored when the body was
// cut, was collected before the body was used.
func isChunkGone(err error) bool {
	var e *backend.SubjectError
	return errors.As(err, &e) && e.Subject == "chunk" && errors.Is(e.Err, ErrNotFound)
}

// repeatable reports whether the items can be read again.
func repeatable(steps [][]Item) bool {
	for _, items := range steps {
		for i := range items {
			if items[i].Reader != nil {
				return false
			}
		}
	}
	return true
}

// usages turns items into the records of their content and the usages of spans.
func (s *Store) usages(ctx context.Context, steps [][]Item) ([]structure.Record, [][]structure.Usage, error) {
	now := s.timestamp()
	content := make([]structure.Record, 0, len(steps))
	usages := make([][]structure.Usage, len(steps))
	for i, items := range steps {
		if len(items) == 0 {
			return nil, nil, fmt.Errorf("span of no items: %w", ErrInvalid)
		}
		usages[i] = make([]structure.Usage, len(items))
		for k, item := range items {
			if err := item.check(now); err != nil {
				return nil, nil, err
			}
			u := &usages[i][k]
			if item.Content.IsZero() {
				b, err := s.block(ctx, &item)
				if err != nil {
					return nil, nil, err
				}
				content = append(content, b)
				item.Content = b.ID
			}
			*u = usageOf(&item)
		}
	}
	ownOrigins(content, usages)
	return content, usages, nil
}

func usageOf(i *Item) structure.Usage {
	u := structure.Usage{
		Kind: i.Kind, Content: i.Content, Role: i.Role, Document: i.Document, Revision: i.Revision,
		Filename: i.Filename, Type: i.Type, SourceID: i.SourceID, Metadata: i.Metadata,
		CreatedAt: i.CreatedAt.UTC(),
	}
	if i.Name != i.Role {
		u.Name = i.Name
	}
	if i.Origin != (Origin{}) {
		o := i.Origin
		u.Origin = &o
	}
	return u
}

// ownOrigins leaves with each usage only what differs from the block that the
// same commit offers. If the store turns out to have the block, the engine gives
// the usage what the offered one said.
func ownOrigins(content []structure.Record, usages [][]structure.Usage) {
	offered := make(map[ContentID]*structure.Block, len(content))
	for _, r := range content {
		if b := r.(*structure.Block); offered[b.ID] == nil {
			offered[b.ID] = b
		}
	}
	for _, span := range usages {
		for i := range span {
			u := &span[i]
			b := offered[u.Content]
			if b == nil {
				continue
			}
			if u.Type == b.Type {
				u.Type = ""
			}
			if u.Origin != nil && *u.Origin == b.Origin {
				u.Origin = nil
			}
		}
	}
}

// append adds spans to a context. Its lock is held.
func (s *Store) append(ctx context.Context, id ContextID, content []structure.Record, usages [][]structure.Usage, expected *SpanRef) ([]SpanRef, error) {
	var spans []SpanRef
	err := s.grow(ctx, expected == nil, func(freshRun bool) ([]structure.Record, []backend.Expect, error) {
		c, err := s.engine.Context(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if expected != nil && c.Tip != *expected {
			return nil, nil, &TipMovedError{&backend.TipError{Context: id, Expected: *expected, Actual: c.Tip}}
		}
		if err := s.makeFindable(ctx, c.Thread, usages); err != nil {
			return nil, nil, err
		}
		records, grown := growth(&c.Context, content, usages, freshRun)
		spans = grown
		return records, []backend.Expect{{Context: id, Tip: c.Tip}}, nil
	})
	if err != nil {
		return nil, takenSourceID(err, usages)
	}
	return spans, nil
}

// grow applies the records that attempt returns for the tips it found, and asks
// again when others came first: to begin a run where the one at hand went on
// elsewhere and, if it may follow, for a tip that has moved. No records end it.
func (s *Store) grow(ctx context.Context, follow bool, attempt func(freshRun bool) ([]structure.Record, []backend.Expect, error)) error {
	for freshRun := false; ; {
		records, tips, err := attempt(freshRun)
		if err != nil || len(records) == 0 {
			return err
		}
		_, err = s.apply(ctx, records, tips...)
		switch {
		case follow && isTipMoved(err):
			freshRun = false
		case isSpanConflict(err) && !freshRun:
			freshRun = true
		default:
			return err
		}
	}
}

// growth returns the records that extend a context by usages, of content that comes
// in the order of the usages. They continue the run that the tip is in; whether
// that is where it ends the engine tells when it refuses. Content stands just before
// the span that uses it: that is short to say, and near when it is read.
func growth(c *structure.Context, content []structure.Record, usages [][]structure.Usage, freshRun bool) ([]structure.Record, []SpanRef) {
	records := make([]structure.Record, 0, len(content)+len(usages)+2)
	at := c.Tip
	if at.IsZero() || freshRun || !c.Set.IsZero() && c.Tip == c.Base {
		run := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: c.Tip}
		records = append(records, run)
		at = SpanRef{Run: run.ID}
	}
	spans := make([]SpanRef, len(usages))
	for i, u := range usages {
		at.Seq++
		span := &structure.Span{Ref: at, Usages: u}
		if i == 0 && c.Tip == c.Base {
			span.Set = c.Set
		}
		for k := range u {
			if len(content) > 0 && content[0].(*structure.Block).ID == u[k].Content {
				records, content = append(records, content[0]), content[1:]
			}
		}
		records = append(records, span)
		spans[i] = at
	}
	return append(records, &structure.Tip{Context: c.ID, Span: at}), spans
}

// makeFindable gives the usages with a source id their aliases, in a thread.
func (s *Store) makeFindable(ctx context.Context, thread ThreadID, usages [][]structure.Usage) error {
	var in *structure.Thread
	for _, span := range usages {
		for i := range span {
			if span[i].SourceID == "" || thread.IsZero() {
				continue
			}
			if in == nil {
				var err error
				if in, err = s.engine.Thread(ctx, thread); err != nil {
					return err
				}
			}
			span[i].Alias = messageAlias(in, span[i].SourceID)
		}
	}
	return nil
}

// messageAlias finds a message in a thread. One in a thread that was deleted does
// not stand in the way of a new thread of that id.
func messageAlias(in *structure.Thread, sourceID string) structure.Alias {
	return Aliases(in)(sourceID)
}

// Aliases returns what derives the alias of a message in a thread from its source
// id, for those who make commits themselves: Thread.Find looks for it.
func Aliases(in *structure.Thread) func(sourceID string) structure.Alias {
	thread, incarnation := in.ID.String(), strconv.FormatUint(in.Incarnation, 16)
	return func(sourceID string) structure.Alias {
		return structure.DeriveID[structure.Alias]("usage", thread, incarnation, sourceID)
	}
}

// takenSourceID makes an engine's report of an alias that is taken name the source
// id that it was derived from.
func takenSourceID(err error, usages [][]structure.Usage) error {
	var subject *SubjectError
	if !errors.Is(err, ErrExists) || !errors.As(err, &subject) || subject.Subject != "alias" {
		return err
	}
	for _, span := range usages {
		for _, u := range span {
			if u.Alias.String() == subject.ID {
				return subjectError("message", u.SourceID, ErrExists, "in its thread")
			}
		}
	}
	return err
}

func isSpanConflict(err error) bool {
	var subject *backend.SubjectError
	return errors.As(err, &subject) && subject.Subject == "span" && errors.Is(err, ErrConflict)
}
