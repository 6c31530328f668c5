package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// mostRead limits the data that is read from the log at once. Tests make it smaller.
var mostRead = 8 << 20

// A tail begins at the head, without its data, so that it shows whether the log has the head. It ends
// with the row that exceeds the size limit, and before a number: a limit on rows makes a server
// without statistics sort the whole rest of the log. The first row after the head is always read, so
// that a gap is noticed.
const tailSQL = `SELECT n, count, id, data, (SELECT epoch FROM lineage_store WHERE store = $1) AS epoch FROM (
  SELECT n, count, id, CASE WHEN n > $2 THEN data END AS data,
    sum(CASE WHEN n > $2 THEN octet_length(data) ELSE 0 END) OVER (ORDER BY n) - octet_length(data) AS before
  FROM lineage_log WHERE store = $1 AND n >= $2
    AND n < greatest($3, 1 + (SELECT min(n) FROM lineage_log WHERE store = $1 AND n > $2))
) tail WHERE before < $4 ORDER BY n`

const (
	fewCommits  = 1 << 10 // in the tail of a store that is written to
	mostCommits = 1 << 14 // when there may be many
)

// tail returns rows after the head, in order, and whether there may be more. It is errDiverged if
// the log does not have the head.
func (l *log) tail(ctx context.Context, h head, commits uint64) (rows []logRow, more bool, err error) {
	err = l.read(ctx, func(b *pgx.Batch) {
		b.Queue(tailSQL, l.store, int64(h.first), int64(h.next()+commits), mostRead).Query(func(found pgx.Rows) (err error) {
			rows, err = readRows(found)
			return err
		})
	})
	if err != nil {
		return nil, false, err
	}
	return checkTail(rows, h, commits)
}

// longTail is like tail, for a log that may have much after the head. It is retried.
func (l *log) longTail(ctx context.Context, h head) (rows []logRow, more bool, err error) {
	err = withLongRetry(ctx, readTime, func(ctx context.Context) (err error) {
		rows, more, err = l.tail(ctx, h, mostCommits)
		return err
	})
	return rows, more, err
}

// checkTail checks the rows of a tail, and removes the head from them.
func checkTail(rows []logRow, h head, commits uint64) ([]logRow, bool, error) {
	size := 0
	for i := range rows {
		if rows[i].epoch != h.epoch {
			return nil, false, errCollected
		}
		size += len(rows[i].data)
	}
	if h.first > 0 {
		if len(rows) == 0 || rows[0].first != h.first || rows[0].id != h.ID || rows[0].last() != h.Cursor {
			return nil, false, errDiverged
		}
		rows = rows[1:]
	}
	next := h.next()
	for i := range rows {
		if rows[i].first != next {
			return nil, false, &backend.CorruptError{File: "the log", What: fmt.Sprintf("row %d instead of row %d", rows[i].first, next)}
		}
		next += rows[i].count
	}
	return rows, next >= h.next()+commits || size >= mostRead, nil
}

func readRows(found pgx.Rows) (rows []logRow, err error) {
	var first, count, id int64
	var epoch *int64
	var data []byte
	_, err = pgx.ForEachRow(found, []any{&first, &count, &id, &data, &epoch}, func() error {
		if epoch == nil {
			return errRemoved
		}
		rows = append(rows, logRow{first: uint64(first), count: uint64(count), id: uint64(id), data: data, epoch: uint64(*epoch)})
		data = nil
		return nil
	})
	return rows, err
}

// lastRow returns the head after the last row that begins at a number or before; without one, only the epoch.
func (l *log) lastRow(ctx context.Context, upTo uint64) (head, error) {
	var epoch int64
	var first, count, id *int64
	err := l.readOne(ctx, `SELECT epoch, n, count, id FROM lineage_store LEFT JOIN LATERAL (
  SELECT n, count, id FROM lineage_log WHERE store = $1 AND n <= $2 ORDER BY n DESC LIMIT 1
) last ON true WHERE store = $1`, []any{l.store, int64(upTo)}, &epoch, &first, &count, &id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errRemoved
	}
	h := head{epoch: uint64(epoch)}
	if err == nil && first != nil {
		h = h.after(&logRow{first: uint64(*first), count: uint64(*count), id: uint64(*id)})
	}
	return h, err
}

// before returns the row before the one with a commit.
func (l *log) before(ctx context.Context, number, epoch uint64) (h head, err error) {
	err = withRetry(ctx, func(ctx context.Context) error {
		if h, err = l.lastRow(ctx, number); err == nil && h.first > 0 && h.Number >= number {
			h, err = l.lastRow(ctx, h.first-1)
		}
		h.epoch = epoch
		return err
	})
	return h, err
}

// cursorOf returns the cursor of an existing commit.
func (l *log) cursorOf(ctx context.Context, number uint64) (at backend.Cursor, err error) {
	err = withRetry(ctx, func(ctx context.Context) error {
		h, err := l.lastRow(ctx, number)
		if err == nil && (h.first == 0 || h.Number < number) {
			err = &backend.CorruptError{File: "the log", What: fmt.Sprintf("commit %d is missing", number)}
		}
		at = backend.Cursor{Number: number, ID: h.ID}
		return err
	})
	return at, err
}

// checkCursor returns an error if a cursor does not belong to the history of the log.
func (l *log) checkCursor(ctx context.Context, c backend.Cursor) error {
	if c.Number == 0 || c.ID == 0 {
		return nil
	}
	return withRetry(ctx, func(ctx context.Context) error { return l.checkCursorOnce(ctx, c) })
}

func (l *log) checkCursorOnce(ctx context.Context, c backend.Cursor) error {
	h, err := l.lastRow(ctx, c.Number)
	if err != nil || h.first > 0 && h.Number >= c.Number && h.ID == c.ID {
		return err
	}
	if h.Number < c.Number {
		if err := l.requireLatest(ctx, c.Number); err != nil {
			return err
		}
	}
	common, err := l.common(ctx, c)
	return errors.Join(err, &backend.DivergedError{After: c, Common: common})
}

// requireLatest is errLagging if the log may have a commit that was not found: on a standby it may continue on its server, and a
// server that has the commit is not the one that was asked before, or has become the primary meanwhile.
func (l *log) requireLatest(ctx context.Context, number uint64) error {
	r, err := l.reachOf(ctx, number, 0, 0)
	if err == nil && (r.standby || r.reached) {
		err = errLagging
	}
	return err
}

// reach is how far the log of a server goes.
type reach struct {
	standby bool // the server is a standby
	row     bool // the log has a row
	reached bool // the log has a commit with the number of the row's first commit, or a later one
}

// reachOf returns how far the log goes, in one state: whether it has the row that begins with a number, and whether it has that number
// at all.
func (l *log) reachOf(ctx context.Context, first, id uint64, count int64) (r reach, err error) {
	err = l.readOne(ctx, `SELECT pg_is_in_recovery(), EXISTS (SELECT FROM lineage_log WHERE store = $1 AND n = $2 AND id = $3 AND count = $4),
  coalesce((SELECT n + count > $2 FROM lineage_log WHERE store = $1 ORDER BY n DESC LIMIT 1), false)`,
		[]any{l.store, int64(first), int64(id), count}, &r.standby, &r.row, &r.reached)
	return r, err
}

// common returns the last commit that is known to be common with the history of a cursor, judging by its id.
func (l *log) common(ctx context.Context, c backend.Cursor) (backend.Cursor, error) {
	var last *int64
	err := l.readOne(ctx, `SELECT max(n + count - 1) FROM lineage_log WHERE store = $1 AND id = $2`, []any{l.store, int64(c.ID)}, &last)
	if err != nil || last == nil {
		return backend.Cursor{}, err
	}
	return backend.Cursor{Number: uint64(*last), ID: c.ID}, nil
}

// requireHead returns errBehind unless the log ends with the given row.
func (l *log) requireHead(ctx context.Context, h head) error {
	last, err := l.lastRow(ctx, math.MaxInt64)
	if err == nil && last != h {
		return errBehind
	}
	return err
}
