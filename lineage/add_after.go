package lineage

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
)

// AddAfter adds items after any span of the store, each after the one before it, all or none; the zero span
// begins a history. Each item becomes a span (but see Together). Document revisions are numbered as in
// Extend. No context moves. The new spans belong to the thread, which from then on keeps all its
// messages: see ThreadOptions.Keep.
func (t *Thread) AddAfter(ctx context.Context, parent SpanRef, items ...Item) (spans []SpanRef, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	if items, err = t.store.revisedAfter(ctx, parent, flat(items)); err != nil {
		return nil, err
	}
	var m material
	err = t.store.change(ctx, func(b *write.Batch, try write.Try) error {
		if err := m.prepare(ctx, t.store, items, b, try); err != nil {
			return err
		}
		thread, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		place, err := write.After(ctx, t.store.engine, parent, thread.Home())
		if err != nil {
			return err
		}
		place.Fresh = place.Fresh || try.Fresh
		if thread.Keeps {
			b.ExpectThread(t.id, thread)
		} else {
			changed := *thread
			changed.Keeps = true
			if err := t.store.clearDeletedActive(ctx, &changed); err != nil {
				return err
			}
			b.ChangeThread(thread, changed)
		}
		spans = b.Extend(place, m.content, m.steps)
		return nil
	})
	if err != nil {
		return nil, takenSourceID(err, m.steps)
	}
	return spans, nil
}

// Spans yields the entries of all spans that belong to the thread, on any history: those that its
// contexts added and those added by AddAfter, but not those that its contexts share with other threads.
// Unreachable spans are included until the next Collect. Within a history, earlier spans come
// first.
func (t *Thread) Spans(ctx context.Context) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		reach, err := backend.OwnReach(ctx, t.store.engine, t.id)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range reach.Extents() {
			last := SpanRef{Run: e.Run.ID, Seq: e.Last}
			for entry, err := range t.store.History(ctx, last, Window{From: e.Run.Position(1)}) {
				if !yield(entry, err) || err != nil {
					return
				}
			}
		}
	}
}

// Follows yields the spans directly after a span, in any thread. For the zero span it yields the
// first span of each history.
func (s *Store) Follows(ctx context.Context, at SpanRef) iter.Seq2[SpanRef, error] {
	return backend.Follows(ctx, s.engine, at)
}
