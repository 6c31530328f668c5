package searchindex

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Subjects that a window changed are written as they are in the snapshot.

// addTip adds a tip. It is outside threads if its thread does not exist.
func (w *indexUpdate) addTip(ctx context.Context, t tip) error {
	if t.seq == 0 {
		return nil
	}
	home, err := w.home(ctx, t.thread)
	if err != nil {
		return err
	}
	t.thread = home.Thread
	w.tips.are = append(w.tips.are, t)
	return nil
}

// home returns the present home of a thread, zero if there is none.
func (w *indexUpdate) home(ctx context.Context, id structure.ThreadID) (structure.Home, error) {
	h, known := w.homes[id]
	if known || id.IsZero() {
		return h, nil
	}
	t, err := w.feed.State.Thread(ctx, id)
	if err == nil {
		h = t.Home()
	} else if !errors.Is(err, lineage.ErrNotFound) {
		return h, err
	}
	w.homes[id] = h
	return h, nil
}

// settleThreads reads the changed threads.
func (w *indexUpdate) settleThreads(ctx context.Context) error {
	t := &w.threads
	for id := range w.feed.Changes.Threads {
		t.saw(id)
	}
	was, err := w.indexedThreads(ctx, t.seen)
	if err != nil {
		return err
	}
	for _, id := range t.seen {
		change, changed := w.feed.Changes.Threads[id]
		thread, err := w.feed.State.Thread(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			thread, err = nil, nil
		}
		if err != nil {
			return err
		}
		if thread == nil || change.Deleted {
			t.gone = append(t.gone, id[:])
		}
		if thread == nil {
			w.homes[id] = structure.Home{}
			continue
		}
		w.homes[id] = thread.Home()
		keeps, known := was[id]
		if known && !changed {
			continue
		}
		w.next.threads++
		t.ids, t.number = append(t.ids, id[:]), append(t.number, w.next.threads)
		t.user, t.keeps = append(t.user, []byte(thread.UserID)), append(t.keeps, thread.Keeps)
		if known && keeps != thread.Keeps {
			t.kept = append(t.kept, id[:])
		}
	}
	return nil
}

// indexedThreads returns which of some threads are indexed, and whether they keep their runs.
func (w *indexUpdate) indexedThreads(ctx context.Context, threads []structure.ThreadID) (map[structure.ThreadID]bool, error) {
	keep := make(map[structure.ThreadID]bool)
	if len(threads) == 0 {
		return keep, nil
	}
	ids := make([][]byte, len(threads))
	for i := range threads {
		ids[i] = threads[i][:]
	}
	return keep, w.index.server.Read(ctx, func(b *pgx.Batch) {
		b.Queue(`SELECT id, keeps FROM lineage_search_thread WHERE store = $1 AND id = ANY($2::bytea[])`, w.index.store, ids).Query(func(rows pgx.Rows) error {
			var id []byte
			var keeps bool
			_, err := pgx.ForEachRow(rows, []any{&id, &keeps}, func() error {
				keep[structure.ThreadID(id)] = keeps
				return nil
			})
			return err
		})
	})
}

// settleContexts reads the tips of changed contexts.
func (w *indexUpdate) settleContexts(ctx context.Context) error {
	for id, change := range w.feed.Changes.Contexts {
		if !change.Stated && !change.Moved {
			continue
		}
		key := string(id[:])
		w.tips.keys[key] = true
		c, err := w.feed.State.Context(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if lineage.BesideMessages(c.Metadata) {
			continue
		}
		if err := w.addTip(ctx, tip{key: key, thread: c.Thread, run: string(c.Tip.Run[:]), seq: c.Tip.Seq}); err != nil {
			return err
		}
	}
	return nil
}

// settleCheckpoints reads changed checkpoints.
func (w *indexUpdate) settleCheckpoints(ctx context.Context) error {
	for name := range w.feed.Changes.Checkpoints {
		key := checkpointKey(name)
		w.tips.keys[key] = true
		c, err := w.feed.State.Checkpoint(ctx, name.Thread, name.Name)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err == nil {
			err = w.addTip(ctx, tip{key: key, thread: name.Thread, run: string(c.Span.Run[:]), seq: c.Span.Seq})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settleSummaries reads the summaries of changed contexts. Each is a run with one step, which its context sees.
func (w *indexUpdate) settleSummaries(ctx context.Context) error {
	for id, change := range w.feed.Changes.Contexts {
		if !change.Stated && !change.Summarized {
			continue
		}
		owner := searched.SummariesOf(id)
		w.tips.owners[string(owner)] = true
		c, err := w.feed.State.Context(ctx, id)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for r, err := range w.feed.State.Summaries(ctx, id) {
			if err != nil {
				return err
			}
			key := string(searched.SummaryKey(id, r.ID))
			if !w.tips.keys[key] { // two summaries may have one id
				w.tips.keys[key] = true
				if err := w.addTip(ctx, tip{key: key, thread: c.Thread, run: key, seq: 1, owner: owner}); err != nil {
					return err
				}
			}
			b, err := searched.BlockIn(ctx, w.feed.State, r.Content)
			if err != nil {
				return err
			}
			if b != nil {
				w.mention(mention{text: searched.TextOf(r.Content, form.Plain), run: key, seq: 1, kind: searched.Summary}, text{content: r.Content, kind: searched.Summary})
			}
		}
	}
	return nil
}

// settleContents finds content that was erased, or stored again.
func (w *indexUpdate) settleContents(ctx context.Context) error {
	changed := make([]content.ID, 0, len(w.feed.Changes.Erased))
	for id := range w.feed.Changes.Erased {
		changed = append(changed, id)
	}
	if w.before.erased {
		restored, err := w.storedAgain(ctx)
		if err != nil {
			return err
		}
		changed = append(changed, restored...)
	}
	for _, id := range changed {
		b, err := searched.BlockIn(ctx, w.feed.State, id)
		if err != nil {
			return err
		}
		if b == nil {
			w.erased, w.next.erased = append(w.erased, id), true
			for _, r := range searched.Readings {
				t := searched.TextOf(id, r)
				w.gone = append(w.gone, t[:])
			}
			continue
		}
		if err := w.restore(ctx, id); err != nil {
			return err
		}
	}
	if len(w.restored) == 0 {
		return nil
	}
	return w.resummarize(ctx)
}

// restore adds the spans that use content that was stored again.
func (w *indexUpdate) restore(ctx context.Context, id content.ID) error {
	w.restored[id] = true
	for u, err := range w.feed.State.Where(ctx, id) {
		if err != nil {
			return err
		}
		for step, err := range w.feed.State.Path(ctx, u.Span, structure.Window{Last: 1}, backend.PathOptions{}) {
			if err != nil {
				return err
			}
			w.spans = append(w.spans, step.Span)
		}
	}
	return nil
}

// resummarize marks all contexts with summaries as changed, because summaries may use content that was stored again.
func (w *indexUpdate) resummarize(ctx context.Context) error {
	return w.index.server.Read(ctx, func(b *pgx.Batch) {
		b.Queue(`SELECT DISTINCT of FROM lineage_search_tip WHERE store = $1 AND of IS NOT NULL`, w.index.store).Query(func(rows pgx.Rows) error {
			var owner []byte
			_, err := pgx.ForEachRow(rows, []any{&owner}, func() error {
				id, ok := searched.SummarizedIn(owner)
				if !ok {
					return searched.ErrDamaged
				}
				w.feed.Changes.Context(id, derived.ContextChange{Summarized: true})
				return nil
			})
			return err
		})
	})
}

// storedAgain returns the content that was erased and that the window stores.
func (w *indexUpdate) storedAgain(ctx context.Context) (restored []content.ID, err error) {
	stored := make(map[searched.TextID]content.ID)
	var marks [][]byte
	for _, id := range w.feed.Changes.Stored {
		if !w.feed.Changes.Erased[id] {
			mark := searched.TextOf(id, erasedMark)
			stored[mark] = id
			marks = append(marks, mark[:])
		}
	}
	if len(marks) == 0 {
		return nil, nil
	}
	err = w.index.server.Read(ctx, func(b *pgx.Batch) {
		restored = nil
		b.Queue(`SELECT id FROM lineage_search_text WHERE store = $1 AND id = ANY($2::bytea[])`, w.index.store, marks).Query(func(rows pgx.Rows) error {
			var id []byte
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
				restored = append(restored, stored[searched.TextID(id)])
				return nil
			})
			return err
		})
	})
	return restored, err
}
