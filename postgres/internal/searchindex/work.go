package searchindex

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
)

// work is an update or clearing of an index by a process.
type work struct {
	*Index
	owner int64     // random
	until time.Time // when there is no more time for it; zero if it has to be finished
	begun bool      // others may wait for it
}

func (x *Index) work(until time.Time) *work {
	return &work{Index: x, owner: rand.Int64(), until: until}
}

// late reports whether there is no more time.
func (w *work) late() bool { return !w.until.IsZero() && time.Now().After(w.until) }

// waited returns the row when no other process is working, or when the index has a commit. It is derived.ErrUnfinished if
// another process is still working when there is no more time.
func (w *work) waited(ctx context.Context, head backend.Cursor, u searched.Updating) (meta, error) {
	var first *meta
	for {
		m, err := w.meta(ctx)
		if err != nil || !m.working(w.owner) || !m.clearing && (!m.usable() || m.At.Number >= head.Number) {
			return m, err
		}
		if m.clearing {
			first = nil
		} else if first == nil {
			first = &m
		}
		if w.late() {
			return m, derived.ErrUnfinished
		}
		if u.Progress != nil && first != nil && m.At.Number > first.At.Number {
			u.Progress(m.At.Number-first.At.Number, head.Number-first.At.Number)
		}
		select {
		case <-ctx.Done():
			return m, context.Cause(ctx)
		case <-time.After(waitPause):
		}
	}
}

// release tells the others not to wait. It is needed when the work ended early.
func (w *work) release(ctx context.Context) {
	if !w.begun {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, _ = w.write(ctx, nil, `UPDATE lineage_search SET busy_until = NULL WHERE store = $1 AND owner = $2 RETURNING version`, w.owner) // else they wait for busyTime
}

// tables are those that a cleared index has no rows in, with the column by which they are deleted.
var tables = []struct{ name, key string }{
	{"lineage_search_text", "id"},
	{"lineage_search_usage", "text"},
	{"lineage_search_term", "term"},
	{"lineage_search_tip", "id"},
	{"lineage_search_run", "number"},
	{"lineage_search_thread", "id"},
}

// clearStep is the number of rows that are deleted at once.
const clearStep = 5000

// clear empties an index that was as in m, and begins it for the present epoch. It does nothing if another process has
// changed it, and stops when another one has taken it over. It is derived.ErrUnfinished when there is no more time; the next
// process continues.
func (w *work) clear(ctx context.Context, m meta) error {
	if !m.exists { // there may be rows of one whose row was removed
		_, err := w.write(ctx, nil, `INSERT INTO lineage_search (store, format, epoch, clearing, stamp, generation, terms) SELECT store, $2, epoch, true, $3, 0, 0 FROM lineage_store WHERE store = $1 ON CONFLICT DO NOTHING RETURNING version`,
			format, rand.Int64())
		return err
	}
	owned, err := w.own(ctx, m)
	for i, step := 0, clearStep; i < len(tables) && owned && err == nil; {
		t, deleted := tables[i], 0
		owned, err = w.write(ctx, func(b *pgx.Batch) {
			b.Queue(`WITH gone AS (DELETE FROM `+t.name+` WHERE store = $1 AND `+t.key+` = ANY(ARRAY(SELECT `+t.key+` FROM `+t.name+` WHERE store = $1 ORDER BY `+t.key+` LIMIT $2)) RETURNING store) SELECT count(*) FROM gone`,
				w.store, step).QueryRow(func(row pgx.Row) error { return row.Scan(&deleted) })
		}, `UPDATE lineage_search SET busy_until = statement_timestamp() + make_interval(secs => $3) WHERE store = $1 AND clearing AND owner = $2 RETURNING version`, w.owner, busyTime.Seconds())
		switch {
		case err != nil && ctx.Err() == nil && w.server.Slow(err) && step > 1:
			step, owned, err = step/2, true, nil
		case err == nil && deleted == 0:
			i++
		case err == nil && w.late():
			err = derived.ErrUnfinished
		}
	}
	if err != nil || !owned {
		return err
	}
	_, err = w.write(ctx, nil, `UPDATE lineage_search SET clearing = false, format = $3, epoch = (SELECT epoch FROM lineage_store WHERE store = $1), identity = '',
  number = 0, id = 0, seen_number = 0, seen_id = 0, version = version + 1, generation = $4, spans = 0, runs = 0, threads = 0, terms = $5, erased = false, busy_until = NULL
WHERE store = $1 AND clearing AND owner = $2 RETURNING version`, w.owner, format, rand.Int64(), firstTerm())
	return err
}

// own marks an index that was as in m, so that no process adds to it, for this process to clear or prune. It reports false if another
// process has changed it.
func (w *work) own(ctx context.Context, m meta) (owned bool, err error) {
	w.begun = true
	// The second condition is for an attempt that is repeated because its answer was lost.
	return w.write(ctx, nil, `UPDATE lineage_search SET clearing = true, version = $2::bigint + 1, stamp = $4, owner = $5, busy_until = statement_timestamp() + make_interval(secs => $6)
WHERE store = $1 AND (version = $2 AND stamp = $3 AND (NOT clearing OR busy_until IS NULL OR busy_until <= statement_timestamp() OR owner = $5) OR version = $2::bigint + 1 AND stamp = $4) RETURNING version`,
		m.Version, m.stamp, rand.Int64(), w.owner, busyTime.Seconds())
}

// firstTerm returns the number before the first term. It is random, so that the stores of a database have different
// numbers, which share an index of the server.
func firstTerm() int64 { return rand.Int64N(1 << 32) }

// busyTime is for how long a process that has written or removed a part of the index is expected to do more.
const busyTime = 15 * time.Second

// releaseTime is for how long a process that was cancelled tries to tell the others.
const releaseTime = 5 * time.Second

// waitPause is the pause between looks at an index that another process is making.
const waitPause = 100 * time.Millisecond
