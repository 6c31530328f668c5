package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// extension is a change that adds material to a context.
type extension struct {
	material
	context  *Context
	expected *SpanRef
	lock     *write.ContextLock
	home     structure.Home
	was      backend.Context
	spans    []SpanRef
}

func (c *Context) extend(ctx context.Context, items []Item, expected *SpanRef) ([]SpanRef, error) {
	s := c.store
	e, _ := s.extensions.Get().(*extension)
	if e == nil {
		e = new(extension)
	}
	e.context, e.expected = c, expected
	b := s.writer.Batch()
	defer s.writer.Release(b)
	// Items are not retained, so that they do not escape to the heap.
	err := e.build(ctx, s, items, b.Time())
	if err == nil {
		_, err = s.writer.Do(ctx, b, e)
		for try := 1; write.Gone(err) && repeatable(items) && try < maxBuildTries; try++ {
			b.Reset(s.writer.Now())
			if err = e.build(ctx, s, items, b.Time()); err == nil {
				_, err = s.writer.Do(ctx, b, e)
			}
		}
	}
	e.lock.Unlock()
	spans := e.spans
	if err != nil {
		spans, err = nil, takenSourceID(err, e.steps)
	} else if spans[0].Run != e.was.Tip.Run {
		c.at.Store(&knownHome{e.was.CreatedAt, e.home, spans[0].Run})
	}
	if e.material.clear() {
		*e = extension{material: e.material}
		s.extensions.Put(e)
	}
	return spans, err
}

// maxBuildTries limits retries when a collection deletes pieces of an uploaded body before the
// commit.
const maxBuildTries = 5

// Fill implements write.Change. It locks the context if others wait for the lock, and from the second attempt on.
func (e *extension) Fill(ctx context.Context, b *write.Batch, t write.Try) error {
	c := e.context
	s := c.store
	if t.Taken("source id") || write.Gone(t.Err) {
		return t.Err
	}
	if e.lock == nil && (t.Number > 0 || s.writer.Wanted(c.id)) {
		e.lock = s.writer.Lock(c.id)
	}
	now, behind, err := s.recentContext(ctx, c.id, t.Number == 0)
	if err == nil && behind && e.expected != nil && now.Tip != *e.expected {
		const recent = false
		now, _, err = s.recentContext(ctx, c.id, recent)
	}
	if err != nil {
		return err
	}
	if e.expected != nil && now.Tip != *e.expected {
		return &TipError{Context: c.id, Expected: *e.expected, Actual: now.Tip}
	}
	home, own, err := c.home(ctx, &now.Context)
	if err != nil {
		return err
	}
	e.was, e.home = now, home
	e.spans = appendSteps(b, &now.Context, home, e.content, e.steps, t.Fresh || !own)
	return nil
}

// appendSteps adds steps at the tip of a context.
func appendSteps(b *write.Batch, c *structure.Context, home structure.Home, content []*structure.Block, steps [][]structure.Usage, fresh bool) []SpanRef {
	b.Expect(c.ID, c.Tip)
	return appendStepsAfter(b, c, c.Tip, home, content, steps, fresh)
}

// appendStepsAfter adds steps after a span and points the context to the last one.
func appendStepsAfter(b *write.Batch, c *structure.Context, after SpanRef, home structure.Home, content []*structure.Block, steps [][]structure.Usage, fresh bool) []SpanRef {
	p := write.InsertionPoint{After: after, Home: home, Fresh: fresh}
	if !c.Set.IsZero() && after == c.Base {
		p.Set, p.Fresh = c.Set, true
	}
	spans := b.Extend(p, content, steps)
	b.Point(c.ID, spans[len(spans)-1])
	return spans
}

// home returns the home of new spans of a context, and whether the run of its tip has that home. If it has not, the
// run belongs to another thread, and a new run begins.
func (s *Store) home(ctx context.Context, c *structure.Context) (home structure.Home, own bool, err error) {
	if !c.Thread.IsZero() {
		in, err := s.engine.Thread(ctx, c.Thread)
		if err != nil {
			return home, false, err
		}
		home = in.Home()
	}
	if c.Tip.IsZero() {
		return home, false, nil
	}
	run, err := s.engine.Run(ctx, c.Tip.Run)
	return home, err == nil && run.Home == home, err
}

// home is Store.home with a cache.
func (c *Context) home(ctx context.Context, current *structure.Context) (home structure.Home, own bool, err error) {
	if d := c.at.Load(); d != nil && d.home.Thread == current.Thread && d.run == current.Tip.Run && d.created.Equal(current.CreatedAt) {
		return d.home, true, nil
	}
	home, own, err = c.store.home(ctx, current)
	if own {
		c.at.Store(&knownHome{current.CreatedAt, home, current.Tip.Run})
	}
	return home, own, err
}

// takenSourceID converts an engine's error about a taken source id into one about a message.
func takenSourceID(err error, steps [][]structure.Usage) error {
	var subject *SubjectError
	if !errors.Is(err, ErrExists) || !errors.As(err, &subject) || subject.Subject != "source id" {
		return err
	}
	for _, usages := range steps {
		for _, u := range usages {
			if u.SourceID != "" && fmt.Sprintf("%.80q", u.SourceID) == subject.ID {
				return subjectError("message", u.SourceID, ErrExists, "in its thread")
			}
		}
	}
	return err
}
