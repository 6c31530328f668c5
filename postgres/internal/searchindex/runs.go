package searchindex

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
)

// findRuns looks up the numbers of runs that the window refers to. A run of a later window has none, and the later window
// has what refers to it again.
func (w *indexUpdate) findRuns(ctx context.Context) error {
	if err := w.readRuns(ctx, w.wantedRuns()); err != nil {
		return err
	}
	for _, r := range w.created {
		if r.parent != "" && w.runs[r.parent] == 0 {
			return fmt.Errorf("run %x is missing: %w", r.parent, searched.ErrDamaged)
		}
	}
	for key := range w.lasts {
		if w.runs[key] == 0 {
			return fmt.Errorf("run %x is missing: %w", key, searched.ErrDamaged)
		}
	}
	for i := range w.tips.are {
		t := &w.tips.are[i]
		if w.runs[t.run] != 0 {
			continue
		}
		if t.owner != nil { // the run of a summary
			w.next.runs++
			w.runs[t.run] = w.next.runs
			w.created = append(w.created, newRun{key: t.run})
			w.lasts[t.run] = 1
		} else if w.feed.To == w.feed.Head {
			return fmt.Errorf("run %x is missing: %w", t.run, searched.ErrDamaged)
		}
	}
	return nil
}

// wantedRuns returns the keys of the runs whose numbers are not known yet.
func (w *indexUpdate) wantedRuns() (ids [][]byte) {
	want := func(key string) {
		if _, known := w.runs[key]; !known && key != "" {
			w.runs[key] = 0
			ids = append(ids, []byte(key))
		}
	}
	w.repeats = !w.before.Settled() // by an interrupted update
	for _, r := range w.created {
		want(r.parent)
		if w.repeats {
			ids = append(ids, []byte(r.key))
		}
	}
	for _, s := range w.spans {
		want(string(s.Ref.Run[:]))
	}
	for i := range w.tips.are {
		want(w.tips.are[i].run)
	}
	return ids
}

// readRuns reads the numbers of runs.
func (w *indexUpdate) readRuns(ctx context.Context, ids [][]byte) error {
	if len(ids) == 0 {
		return nil
	}
	return w.index.server.Read(ctx, func(b *pgx.Batch) {
		b.Queue(`SELECT id, number FROM lineage_search_run WHERE store = $1 AND id = ANY($2::bytea[])`, w.index.store, ids).Query(func(rows pgx.Rows) error {
			var id []byte
			var n int64
			_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
				w.runs[string(id)] = n
				return nil
			})
			return err
		})
	})
}
