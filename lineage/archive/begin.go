package archive

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/lineage"
)

// Begun is an import that has read its source up to the first conversation: whether there
// is anything to import is known before there is a store for it.
type Begun struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	options Options
	reading *reading
	seen    seen
	first   *event // with the first conversation
}

// Begin begins an import of an archive: see Import. It returns when the first conversation
// is read, or the source has ended. The context is that of the whole import, which has to be
// closed.
func Begin(ctx context.Context, src Source, o Options) (*Begun, error) {
	formats, err := o.formats()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &reading{opening: opening{ctx: ctx, formats: formats, limits: o.Limits.orDefault()}, forced: o.Format != "", budget: newBudget(readAhead)}
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

// Empty reports whether the source ended without a conversation.
func (b *Begun) Empty() bool { return b.first == nil }

// Into goes on with the import, into a store, and ends it as Import does. It can be called
// once. Of an import that is empty it tells the outcome, and needs no store.
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
	if applied := l.close(); err == nil {
		err = applied
	}
	if err == nil {
		err = b.outcome(&l.report)
	}
	return l.report, err
}

// Close ends the reading, if that goes on still.
func (b *Begun) Close() { b.stop(nil) }

// events yields what is read, from the first conversation on.
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

// stop ends the reading and waits for that.
func (b *Begun) stop(cause error) {
	b.cancel(cause)
	b.reading.budget.close()
	for range b.reading.events {
	}
}

// outcome says how an import ended that read everything and stored what it found.
func (b *Begun) outcome(r *Report) error {
	switch {
	case b.reading.err != nil:
		return b.reading.err
	case r.Conversations > 0 || r.SkippedCount > 0:
		return nil
	case r.IgnoredCount > 0:
		return fmt.Errorf("%s: %w", r.Ignored[0], ErrUnknownFormat)
	}
	return ErrNothingFound
}

// seen is what was read so far beside conversations, and where.
type seen struct {
	report Report
	format string
	file   string
	title  string // of a conversation that is alone in the file and has none
	read   int64
}

// take notes what is no conversation.
func (s *seen) take(e event) {
	s.read = e.read
	switch {
	case e.damage != nil:
		s.report.skip(e.damage)
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
