package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// mostRewritten limits the data of rows that are rewritten at once. Tests make it smaller.
var mostRewritten = 4 << 20

// sweep rewrites the rows of the log with something that is not in use.
type sweep struct {
	log      *log
	pending  collected
	progress func(share float64) // may be nil

	at     head     // the last row that was read
	rows   []logRow // to rewrite
	size   int      // of their data, in bytes
	found  backend.CollectReport
	report backend.CollectReport // what was rewritten of what was found
}

// newSweep returns a sweep that adds to a report.
func newSweep(l *log, pending collected, report backend.CollectReport) *sweep {
	return &sweep{log: l, pending: pending, at: head{epoch: pending.epoch}, found: report, report: report}
}

// run is errDiverged if another process ended the collection, or the history is different.
func (s *sweep) run(ctx context.Context) error {
	until := s.pending.live.Until
	for more := true; more && s.at.Number < until; {
		var rows []logRow
		var err error
		if rows, more, err = s.log.longTail(ctx, s.at); err != nil {
			return err
		}
		for i := range rows {
			if err := s.add(&rows[i]); err != nil {
				return err
			}
			if s.size >= mostRewritten {
				if err := s.rewrite(ctx); err != nil {
					return err
				}
			}
		}
		if s.progress != nil {
			s.progress(min(float64(s.at.Number)/float64(until), 1))
		}
	}
	return s.rewrite(ctx)
}

// add adds the next row of the log to those to rewrite, if it has something that is not in use.
func (s *sweep) add(r *logRow) error {
	commits, changed, err := r.remaining(s.pending.live, &s.found)
	if err != nil {
		return err
	}
	if s.at = s.at.after(r); !changed {
		return nil
	}
	s.size += len(r.data)
	r.data = nil
	for _, c := range commits {
		r.data = appendCommit(r.data, c)
	}
	s.rows = append(s.rows, *r)
	return s.rows[len(s.rows)-1].seal()
}

// rewrite rewrites the rows that were added.
func (s *sweep) rewrite(ctx context.Context) error {
	err := withLongRetry(ctx, writeTime, func(ctx context.Context) error { return s.log.rewrite(ctx, s.pending.epoch, s.rows) })
	if s.rows, s.size = nil, 0; err == nil {
		s.report = s.found
	}
	return err
}

// rewrite replaces the data of rows. It is errCollected if the collection is no longer pending. Its
// lock on the collection keeps the next one from being decided.
func (l *log) rewrite(ctx context.Context, epoch uint64, rows []logRow) error {
	if len(rows) == 0 {
		return nil
	}
	n, id, data := make([]int64, len(rows)), make([]int64, len(rows)), make([][]byte, len(rows))
	for i := range rows {
		n[i], id[i], data[i] = int64(rows[i].first), int64(rows[i].id), rows[i].data
	}
	rewritten := 0
	err := l.transaction(ctx, backend.Normal, func(b *pgx.Batch) {
		l.pending(epoch)(b)
		b.Queue(`UPDATE lineage_log l SET data = r.data FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS r (n, id, data)
WHERE l.store = $1 AND l.n = r.n AND l.id = r.id RETURNING l.n`, l.store, n, id, data).Query(func(found pgx.Rows) error {
			for found.Next() {
				rewritten++
			}
			return found.Err()
		})
	})
	if errors.Is(err, errBehind) || err == nil && rewritten != len(rows) {
		return errCollected
	}
	return err
}

// endCollection deletes the list of a collection. This write is synced, and with it the rewritten
// rows.
func (l *log) endCollection(ctx context.Context, epoch uint64) error {
	return l.transaction(ctx, backend.Full, func(b *pgx.Batch) {
		b.Queue(`DELETE FROM lineage_collection WHERE store = $1 AND epoch = $2`, l.store, int64(epoch))
	})
}
