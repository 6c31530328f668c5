package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Extend adds items to the history of the context, each as a span of its own,
// all or none of them, and returns the spans in order. Its cost does not depend
// on the history, the store or the number of forks.
func (c *Context) Extend(ctx context.Context, items ...Item) ([]SpanRef, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return c.extend(ctx, items, false, nil)
}

// ExtendFrom is Extend for a caller that must not add after something it has not
// seen: unless the context stands at tip, nothing is added and the error matches
// ErrTipMoved.
func (c *Context) ExtendFrom(ctx context.Context, tip SpanRef, items ...Item) ([]SpanRef, error) {
	if len(items) == 0 {
		return nil, nil
	}
	return c.extend(ctx, items, false, &tip)
}

// ExtendTogether adds the items as one span: one step of the history with several
// usages, such as a message and the files that came with it.
func (c *Context) ExtendTogether(ctx context.Context, items ...Item) (SpanRef, error) {
	spans, err := c.extend(ctx, items, true, nil)
	if err != nil {
		return SpanRef{}, err
	}
	return spans[0], nil
}

func (c *Context) extend(ctx context.Context, items []Item, together bool, expected *SpanRef) ([]SpanRef, error) {
	d := c.store.draft()
	defer c.store.discard(d)
	var spans []SpanRef
	err := storing(func() error {
		err := d.take(ctx, c.store, items, together)
		if err != nil {
			return err
		}
		spans, err = c.append(ctx, d, expected)
		return err
	}, items...)
	return spans, err
}

// storing calls store, which stores the bodies of items and then uses them. It does so
// again where a collection took pieces of a body in between.
func storing(store func() error, items ...Item) error {
	for try := 1; ; try++ {
		err := store()
		if !isChunkGone(err) || try == mostTries || !repeatable(items) {
			return err
		}
	}
}

// mostTries is how often a body is stored that collections take pieces of before
// they are used.
const mostTries = 5

// isChunkGone reports whether a piece of a body, known or stored when the body was
// cut, was collected before the body was used.
func isChunkGone(err error) bool {
	if err == nil {
		return false // without memory for what is not there
	}
	var e *backend.SubjectError
	return errors.As(err, &e) && e.Subject == "chunk" && errors.Is(e.Err, ErrNotFound)
}

// repeatable reports whether the items can be read again.
func repeatable(items []Item) bool {
	return !slices.ContainsFunc(items, func(i Item) bool { return i.Reader != nil })
}

// append adds the usages of a draft to a context. It takes the context's lock if
// others want it, or were faster.
func (c *Context) append(ctx context.Context, d *draft, expected *SpanRef) ([]SpanRef, error) {
	s, id := c.store, c.id
	var lock *contextLock
	defer func() { lock.Unlock() }()
	recent := true
	for freshRun, again := false, s.appending.wanted(id); ; {
		if again && lock == nil {
			lock = s.lockContext(id)
		}
		is, behind, err := s.recently(ctx, id, recent)
		if err != nil {
			return nil, err
		}
		recent = false
		if expected != nil && is.Tip != *expected {
			if behind {
				continue
			}
			return nil, &TipMovedError{&backend.TipError{Context: id, Expected: *expected, Actual: is.Tip}}
		}
		home, own, err := c.home(ctx, &is.Context)
		if err != nil {
			return nil, err
		}
		spans := d.grow(&is.Context, home, d.content, d.steps, freshRun || !own)
		err = d.apply(ctx, s, backend.Expect{Context: id, Tip: is.Tip})
		if err == nil {
			if spans[0].Run != is.Tip.Run {
				c.at.Store(&dwelling{is.CreatedAt, home, spans[0].Run})
			}
			return spans, nil
		}
		if freshRun, again = tryAgain(err, expected == nil, freshRun); !again {
			return nil, takenSourceID(err, d.steps)
		}
	}
}

// grow applies the records that attempt returns for the tips it found, and asks
// again when others came first. No records end it.
func (s *Store) grow(ctx context.Context, follow bool, attempt func(freshRun bool) ([]structure.Record, []backend.Expect, error)) error {
	for freshRun, again := false, true; ; {
		records, tips, err := attempt(freshRun)
		if err != nil || len(records) == 0 {
			return err
		}
		_, err = s.apply(ctx, records, tips...)
		if freshRun, again = tryAgain(err, follow, freshRun); !again {
			return err
		}
	}
}

// tryAgain tells what to do after others came first: begin a run where the one at
// hand went on elsewhere and, if it may follow, look again at a tip that has moved.
func tryAgain(err error, follow, wasFresh bool) (freshRun, again bool) {
	switch {
	case follow && isTipMoved(err):
		return false, true
	case isSpanConflict(err) && !wasFresh:
		return true, true
	}
	return false, false
}

// home returns the home of what is said in a context, and whether the run that its tip is
// in belongs there. Another run is not continued: what it holds belongs to another thread.
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

// dwelling is what a context was found to be at home in.
type dwelling struct {
	created time.Time // tells the context from another that had its id
	home    structure.Home
	run     structure.RunID // that belongs there
}

// home is Store.home for a context that is as given, and remembers the answer.
func (c *Context) home(ctx context.Context, is *structure.Context) (home structure.Home, own bool, err error) {
	if d := c.at.Load(); d != nil && d.home.Thread == is.Thread && d.run == is.Tip.Run && d.created.Equal(is.CreatedAt) {
		return d.home, true, nil
	}
	home, own, err = c.store.home(ctx, is)
	if own {
		c.at.Store(&dwelling{is.CreatedAt, home, is.Tip.Run})
	}
	return home, own, err
}

// takenSourceID makes an engine's report of a source id that is taken one about a message.
func takenSourceID(err error, usages [][]structure.Usage) error {
	var subject *SubjectError
	if !errors.Is(err, ErrExists) || !errors.As(err, &subject) || subject.Subject != "source id" {
		return err
	}
	for _, span := range usages {
		for _, u := range span {
			if u.SourceID != "" && fmt.Sprintf("%.80q", u.SourceID) == subject.ID {
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
