package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// log has the statements on the log of one store. It does not interpret commits.
//
// All statements are in transactions with an explicit isolation level: see transaction.go.
type log struct {
	pool     *pgxpool.Pool
	flushing share // of the connections, for synced writes
	store    []byte
	identity [16]byte
	clock    clock
}

// exec is how statements are sent unless the connection string has another mode: with their
// parameters in one round trip, and not prepared, because of poolers in transaction mode.
const exec = pgx.QueryExecModeExec

// head is the last row that a process knows, and the epoch in which it read the log. The zero value
// is the head of an empty log without a collection.
type head struct {
	first uint64
	backend.Cursor
	epoch uint64
}

func (h head) next() uint64 { return h.Number + 1 }

// after returns the head that a row makes.
func (h head) after(r *row) head { return head{r.first, r.last(), h.epoch} }

// count is the number of commits in the row. A received row can have the id of a lost one.
func (h head) count() int64 { return int64(h.Number - h.first + 1) }

// mostRead limits the data that is read from the log at once. Tests make it smaller.
var mostRead = 8 << 20

// errBehind is returned for a row that was not written because the head has changed.
var errBehind = errors.New("another process wrote to the log")

// errDiverged is returned if the log does not have the head that a process knows.
var errDiverged = errors.New("the log has another history")

// errCollected is errDiverged after a collection.
var errCollected = fmt.Errorf("garbage was collected: %w", errDiverged)

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
func (l *log) tail(ctx context.Context, h head, commits uint64) (rows []row, more bool, err error) {
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

// checkTail checks the rows of a tail, and removes the head from them.
func checkTail(rows []row, h head, commits uint64) ([]row, bool, error) {
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

// errRemoved is returned when the row of the store is gone.
var errRemoved = fmt.Errorf("the store was removed: %w", backend.ErrNotFound)

func readRows(found pgx.Rows) (rows []row, err error) {
	var first, count, id int64
	var epoch *int64
	var data []byte
	_, err = pgx.ForEachRow(found, []any{&first, &count, &id, &data, &epoch}, func() error {
		if epoch == nil {
			return errRemoved
		}
		rows = append(rows, row{first: uint64(first), count: uint64(count), id: uint64(id), data: data, epoch: uint64(*epoch)})
		data = nil
		return nil
	})
	return rows, err
}

// A writer that has not locked the store in an earlier round trip sends all its statements at once. The first one locks the
// store, and fails with a division by zero if the epoch or the head of the log is not the one that the writer knows, or if
// there are entries that the writer assumed to be absent. The error stops the statements after it. So nothing depends on a
// number of rows that a server reports, which is wrong on some servers that distribute tables. The head and the entries are
// read before the wait for the lock, which is safe: a row that another process writes meanwhile has the key of the writer's
// own row. The epoch is read after the wait.
const (
	lockAtSQL  = `SELECT 1 / count(*) FROM (SELECT epoch FROM lineage_store WHERE store = $1 FOR UPDATE) s WHERE s.epoch = $2`
	hasHeadSQL = ` AND EXISTS (SELECT FROM lineage_log WHERE store = $1 AND n = $3 AND id = $4 AND count = $5)`
	noneSQL    = ` AND NOT EXISTS (
  SELECT FROM unnest($6::bytea[]) AS k (key), LATERAL (SELECT FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key = k.key LIMIT 1) e)`
)

func (l *log) queueLockAt(b *pgx.Batch, h head, assumed [][]byte) {
	sql, args := lockAtSQL, []any{l.store, int64(h.epoch)}
	if h.first > 0 { // there are no entries before
		sql, args = sql+hasHeadSQL, append(args, int64(h.first), int64(h.ID), h.count())
		if len(assumed) > 0 {
			sql, args = sql+noneSQL, append(args, storedKeys(assumed))
		}
	}
	b.Queue(sql, args...)
}

// queueRow adds the statements that write a row and its entries.
func (l *log) queueRow(b *pgx.Batch, epoch uint64, r *row) {
	if r.once {
		b.Queue(`SELECT 1 / (coalesce((SELECT forgets FROM lineage_head WHERE store = $1 AND epoch = $2), 0) = $3)::int`, l.store, int64(epoch), int64(r.forgets))
	}
	b.Queue(`INSERT INTO lineage_log (store, n, count, id, data, entries) VALUES ($1, $2, $3, $4, $5, $6)`,
		l.store, int64(r.first), int64(r.count), int64(r.id), r.data, int32(len(r.entries)))
	l.queueOutput(b, epoch, r.last().Number, r.output)
	l.queueHead(b, head{r.first, r.last(), epoch}, r.counts, r.folded, r.unfolded.rows())
}

// queueOutput adds the statements that write versions of entries, and what is unfolded.
func (l *log) queueOutput(b *pgx.Batch, epoch, number uint64, m output) {
	if m.changes != nil { // in the place of some that are folded, on the same page
		b.Queue(`INSERT INTO lineage_former (store, epoch, n, part, keys, changes) VALUES ($1, $2, 0, $3, '{}', $4) ON CONFLICT (store, epoch, n, part) DO UPDATE SET changes = excluded.changes`,
			l.store, int64(epoch), int32(m.unfolded.rows()-1), m.changes)
	}
	entries := m.entries
	for part := int32(1); len(entries) > 0; part++ {
		some := entries[:min(len(entries), mostEntries)]
		entries = entries[len(some):]
		ks, values := make([][]byte, len(some)), make([][]byte, len(some))
		var former [][]byte
		for i, e := range some {
			if ks[i], values[i] = stored(e.Entry); e.replaces {
				former = append(former, ks[i])
			}
		}
		b.Queue(`INSERT INTO lineage_entry (store, epoch, key, age, value) VALUES ($1, $2, unnest($4::bytea[]), $3, unnest($5::bytea[]))`,
			l.store, int64(epoch), -int64(number), ks, values)
		if len(former) > 0 {
			b.Queue(`INSERT INTO lineage_former (store, epoch, n, part, keys) VALUES ($1, $2, $3, $4, $5)`, l.store, int64(epoch), int64(number), part, former)
		}
	}
}

// mostEntries limits the entries that a statement writes.
const mostEntries = 1 << 13

// queueHead adds the statement that records for which row of the log there are entries, and how many changes are unfolded.
func (l *log) queueHead(b *pgx.Batch, h head, counts index.Counts, folded uint64, unfolded int) {
	b.Queue(`INSERT INTO lineage_head (store, epoch, first, n, id, numbers, folded, unfolded) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (store, epoch) DO UPDATE SET first = excluded.first, n = excluded.n, id = excluded.id, numbers = excluded.numbers, folded = excluded.folded, unfolded = excluded.unfolded`,
		l.store, int64(h.epoch), int64(h.first), int64(h.Number), int64(h.ID), encodeCounts(counts), int64(folded), int32(unfolded))
}

// append writes a row after the head. After errBehind no attempt can write the row any more, not even
// an earlier one: the log continues differently.
func (l *log) append(ctx context.Context, h head, r *row, d backend.Durability) error {
	return l.transaction(ctx, d, func(b *pgx.Batch) {
		l.queueLockAt(b, h, r.absent)
		l.queueRow(b, h.epoch, r)
	})
}

// write repeats append until the outcome is known: nil if the row is in the log, errBehind if it is
// not and will not be. The key of the row lets it be written once only. It is ErrUncertain when
// patience ends.
func (l *log) write(ctx context.Context, h head, r *row, d backend.Durability) error {
	err := l.append(ctx, h, r, d)
	if err == nil || !mayHaveWritten(err) && !isTransient(err) {
		return explain(err)
	}
	return l.resolve(ctx, h, r, d, err)
}

// resolve is write after an attempt that failed, and that may still be running on the server: then the next
// one waits for it.
func (l *log) resolve(ctx context.Context, h head, r *row, d backend.Durability, failed error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	maybe := mayHaveWritten(failed)
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		select {
		case <-ctx.Done():
			return unresolved(maybe, failed)
		case <-time.After(pause):
		}
		err := l.append(ctx, h, r, d)
		if errors.Is(err, errBehind) {
			err = l.confirm(ctx, r)
		}
		if err == nil || errors.Is(err, errBehind) {
			return err
		}
		failed = err
		if maybe = maybe || mayHaveWritten(err); !mayHaveWritten(err) && !isTransient(err) {
			return unresolved(maybe, failed)
		}
	}
}

func unresolved(maybe bool, failed error) error {
	if failed = explain(failed); maybe {
		return fmt.Errorf("%w: %w", backend.ErrUncertain, failed)
	}
	return failed
}

// confirm finds a row that may have been written, and makes it durable: the server may have restarted since, or a standby
// may not have answered. It is errBehind if the row is not there.
func (l *log) confirm(ctx context.Context, r *row) error {
	err := l.flush(ctx, head{first: r.first, Cursor: r.last()})
	if errors.Is(err, errDiverged) {
		return errBehind
	}
	return err
}

// flush makes the log durable up to a row, by a later synced write. It is errDiverged if the row is
// not there.
func (l *log) flush(ctx context.Context, h head) error {
	if h.first == 0 {
		return nil
	}
	there, err := l.flushAll(ctx, []head{h})
	if err == nil && !there[0] {
		err = errDiverged
	}
	return err
}

// flushAll makes durable what the log has of some rows, which were written before it is called, and reports which it has.
func (l *log) flushAll(ctx context.Context, heads []head) (there []bool, err error) {
	if err := l.flushing.enter(ctx); err != nil {
		return nil, err
	}
	defer l.flushing.leave()
	there = make([]bool, len(heads))
	return there, l.transaction(ctx, backend.Full, func(b *pgx.Batch) {
		for i, h := range heads {
			if there[i] = h.first == 0; there[i] {
				continue
			}
			b.Queue(`SELECT count(*) > 0 FROM lineage_log WHERE store = $1 AND n = $2 AND id = $3 AND count = $4`, l.store, int64(h.first), int64(h.ID), h.count()).QueryRow(func(row pgx.Row) error {
				return row.Scan(&there[i])
			})
		}
		b.Queue(`INSERT INTO lineage_durable (store, slot, n) VALUES ($1, $2, $3) ON CONFLICT (store, slot) DO UPDATE SET n = excluded.n`,
			l.store, mathrand.IntN(durableSlots), int64(heads[len(heads)-1].first))
	})
}

// durableSlots is the number of rows of a store that synced writes change. Two that change the same row are synced one after
// the other.
const durableSlots = 64

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
		h = h.after(&row{first: uint64(*first), count: uint64(*count), id: uint64(*id)})
	}
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
	return withRetry(ctx, func(ctx context.Context) error {
		h, err := l.lastRow(ctx, c.Number)
		if err != nil || h.first > 0 && h.Number >= c.Number && h.ID == c.ID {
			return err
		}
		common, err := l.common(ctx, c)
		return errors.Join(err, &backend.DivergedError{After: c, Common: common})
	})
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

// requireHead is errBehind unless the log ends with a row.
func (l *log) requireHead(ctx context.Context, h head) error {
	last, err := l.lastRow(ctx, math.MaxInt64)
	if err == nil && last != h {
		return errBehind
	}
	return err
}

// writeTx is a transaction that locks the store: no other process writes meanwhile.
type writeTx struct {
	log   *log
	conn  *pgxpool.Conn
	epoch uint64
}

// lock begins a write transaction, and reads the state and what is needed in it. there reports whether the log has the row of a state
// that is known. It is errCollected if the epoch is another one.
func (l *log) lock(ctx context.Context, k known, n need) (t *writeTx, st state, f found, there bool, err error) {
	conn, err := l.acquire(ctx)
	if err != nil {
		return nil, st, f, false, err
	}
	t = &writeTx{l, conn, k.epoch}
	// What follows the lock are separate statements, so that their snapshots are taken when the lock is held. They are
	// sent together.
	var b pgx.Batch
	begin(&b)
	b.Queue(lockSQL, l.store)
	var horizon uint64
	l.queueState(&b, k, &st, &horizon, &there)
	n.queue(&b, l, k.epoch, unlimited, &f)
	if err = send(ctx, conn, &b); err == nil && st.unfilled {
		err = errUnfilled
	} else if err == nil && st.epoch != k.epoch {
		err = errCollected
	}
	if err != nil {
		t.rollback()
		t = nil
	}
	return t, st, f, there, err
}

// read reads in the transaction, whose state nobody changes.
func (t *writeTx) read(ctx context.Context, n need) (f found, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	n.queue(&b, t.log, t.epoch, unlimited, &f)
	return f, send(ctx, t.conn, &b)
}

// append writes a row and ends the transaction. After an error the row may have been written.
func (t *writeTx) append(ctx context.Context, r *row, d backend.Durability) error {
	var b pgx.Batch
	queueDurability(&b, d)
	t.log.queueRow(&b, t.epoch, r)
	return t.commit(ctx, &b)
}

// write is append until the outcome is known. See log.write. h is the head before the row.
func (t *writeTx) write(ctx context.Context, h head, r *row, d backend.Durability) error {
	limited, cancel := context.WithTimeout(ctx, writeTime)
	err := t.append(limited, r, d)
	cancel()
	if err == nil || !mayHaveWritten(err) && !isTransient(err) {
		return explain(err)
	}
	return t.log.resolve(ctx, h, r, d, err)
}

// rollback ends the transaction. After append it only releases the connection.
func (t *writeTx) rollback() {
	if t == nil || t.conn == nil {
		return
	}
	conn := t.conn
	t.conn = nil
	if conn.Conn().PgConn().TxStatus() != 'I' && !conn.Conn().IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := conn.Exec(ctx, `ROLLBACK`); err != nil {
			_ = conn.Conn().Close(ctx)
		}
	}
	conn.Release()
}
