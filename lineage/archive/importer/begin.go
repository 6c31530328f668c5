package importer

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Begun is an import that has read its source up to the first conversation. It lets a caller check whether there is
// anything to import before it creates a store.
type Begun struct {
	ctx     context.Context
	options Options
	reading *archive.Ahead
	seen    seen
	first   *archive.Event // with the first conversation
}

// Begin starts an import: see Import. It returns when the first conversation was read or the source has ended. ctx
// applies to the whole import. The caller must call Close.
func Begin(ctx context.Context, src archive.Source, o Options) (*Begun, error) {
	options, err := o.reading()
	if err != nil {
		return nil, err
	}
	r, err := archive.ReadAhead(ctx, src, options)
	if err != nil {
		return nil, err
	}
	b := &Begun{ctx: ctx, options: o, reading: r}
	b.seen.files = o.Files
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		if e.Conversation != nil {
			b.first = &e
			break
		}
		b.seen.take(e)
	}
	return b, nil
}

// Empty reports whether the source has no conversations.
func (b *Begun) Empty() bool { return b.first == nil }

// Into completes the import into a store. It may be called once. An empty import returns its report and needs no
// store.
func (b *Begun) Into(store *lineage.Store) (Report, error) {
	if b.Empty() {
		return b.seen.report, b.outcome(&b.seen.report)
	}
	l := newLoader(b.ctx, store, b.options)
	l.seen = b.seen
	err := l.all(b.events())
	if err != nil {
		b.reading.Stop(err)
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
func (b *Begun) Close() { b.reading.Stop(nil) }

// events yields the events from the first conversation on.
func (b *Begun) events() iter.Seq[archive.Event] {
	return func(yield func(archive.Event) bool) {
		first := *b.first
		b.first = &archive.Event{} // it is needed once, and may be large
		for e, ok := first, true; ok; e, ok = b.reading.Next() {
			if !yield(e) {
				return
			}
		}
	}
}

// outcome returns the error of an import that has read the whole source and stored all conversations.
func (b *Begun) outcome(r *Report) error {
	switch {
	case b.reading.Err() != nil:
		return b.reading.Err()
	case r.Conversations > 0 || r.SkippedCount > 0 || r.Unchanged > 0:
		return nil
	case r.IgnoredCount > 0:
		return fmt.Errorf("%s: %w", r.Ignored[0], archive.ErrUnknownFormat)
	}
	return archive.ErrNothingFound
}
