package archive

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/lineage"
)

// Begun is an import that has read its source up to the first conversation. So a caller knows
// whether there is anything to import before it creates a store.
type Begun struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	options Options
	reading *reading
	seen    seen
	first   *event // with the first conversation
}

// Begin begins an import: see Import. It returns when the first conversation is read or the source
// has ended. ctx applies to the whole import. Close must be called.
func Begin(ctx context.Context, src Source, o Options) (*Begun, error) {
	formats, err := o.formats()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if o.Files != nil {
		o.Files.setOptions(&o)
	}
	r := &reading{opening: opening{ctx: ctx, formats: formats, limits: o.Limits.orDefault(), rows: o.Rows, again: o.Files}, forced: o.Format != "", budget: newBudget(readAhead)}
	r.events = make(chan event, 256)
	go func() {
		defer close(r.events)
		r.err = r.run(src)
	}()
	b := &Begun{ctx: ctx, cancel: cancel, options: o, reading: r}
	for e := range r.events {
		if e.conversation != nil {
			b.first = &e
			break
		}
		b.seen.take(e)
	}
	return b, nil
}

// Empty reports whether the source has no conversation.
func (b *Begun) Empty() bool { return b.first == nil }

// Into completes the import into a store. It can be called once. For an empty import it returns the
// result and needs no store.
func (b *Begun) Into(store *lineage.Store) (Report, error) {
	if b.Empty() {
		return b.seen.report, b.outcome(&b.seen.report)
	}
	l := newLoader(b.ctx, store, b.options)
	l.seen = b.seen
	err := l.all(b.events(), b.reading.budget)
	if err != nil {
		b.stop(err)
	}
	l.close()
	if err == nil {
		if err = b.outcome(&l.report); err == nil {
			err = b.options.Files.save(b.ctx, store)
		}
	}
	return l.report, err
}

// Close stops reading.
func (b *Begun) Close() { b.stop(nil) }

// events yields the events from the first conversation on.
func (b *Begun) events() iter.Seq[event] {
	return func(yield func(event) bool) {
		if !yield(*b.first) {
			return
		}
		for e := range b.reading.events {
			if !yield(e) {
				return
			}
		}
	}
}

// stop stops reading and waits for its end.
func (b *Begun) stop(cause error) {
	b.cancel(cause)
	b.reading.budget.close()
	for range b.reading.events {
	}
}

// outcome returns the error of an import that has read everything and stored all conversations.
func (b *Begun) outcome(r *Report) error {
	switch {
	case b.reading.err != nil:
		return b.reading.err
	case r.Conversations > 0 || r.SkippedCount > 0 || r.Unchanged > 0:
		return nil
	case r.IgnoredCount > 0:
		return fmt.Errorf("%s: %w", r.Ignored[0], ErrUnknownFormat)
	}
	return ErrNothingFound
}

// seen is the state of reading outside of conversations.
type seen struct {
	report Report
	format string
	file   string
	title  string // for an untitled conversation that is alone in the file
	read   int64
}

// take records an event that is not a conversation.
func (s *seen) take(e event) {
	s.read = e.read
	switch {
	case e.unchanged:
		s.report.Unchanged++
	case e.damage != nil:
		s.report.skip(e.damage)
	case e.repair != nil:
		s.report.repair(e.repair)
	case e.ignored != "":
		if s.report.IgnoredCount++; s.report.IgnoredCount <= maxReported {
			s.report.Ignored = append(s.report.Ignored, e.ignored)
		}
	case e.format != "":
		s.format, s.file, s.title = e.format, e.file, e.title
		if !slices.Contains(s.report.Formats, e.format) {
			s.report.Formats = append(s.report.Formats, e.format)
		}
	}
}
