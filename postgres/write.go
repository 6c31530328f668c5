package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

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
func (l *log) queueRow(b *pgx.Batch, epoch uint64, r *logRow) {
	if r.once {
		b.Queue(`SELECT 1 / (coalesce((SELECT forgets FROM lineage_head WHERE store = $1 AND epoch = $2), 0) = $3)::int`, l.store, int64(epoch), int64(r.forgets))
	}
	b.Queue(`INSERT INTO lineage_log (store, n, count, id, data, entries) VALUES ($1, $2, $3, $4, $5, $6)`,
		l.store, int64(r.first), int64(r.count), int64(r.id), r.data, int32(len(r.entries)))
	l.queueOutput(b, epoch, r.last().Number, r.output)
	l.queueHead(b, head{r.first, r.last(), epoch}, r.counts, r.folded, r.unfolded.rows())
}

// queueOutput adds the statements that write versions of entries, and what is unfolded.
func (l *log) queueOutput(b *pgx.Batch, epoch, number uint64, out output) {
	if out.changes != nil { // in the place of some that are folded, on the same page
		b.Queue(`INSERT INTO lineage_former (store, epoch, n, part, keys, changes) VALUES ($1, $2, 0, $3, '{}', $4) ON CONFLICT (store, epoch, n, part) DO UPDATE SET changes = excluded.changes`,
			l.store, int64(epoch), int32(out.unfolded.rows()-1), out.changes)
	}
	entries := out.entries
	for part := int32(1); len(entries) > 0; part++ {
		batch := entries[:min(len(entries), mostEntries)]
		entries = entries[len(batch):]
		ks, values := make([][]byte, len(batch)), make([][]byte, len(batch))
		var former [][]byte
		for i, e := range batch {
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

// queueHead adds the statement that records the last row of the log with entries, and the number of unfolded changes.
func (l *log) queueHead(b *pgx.Batch, h head, counts index.Counts, folded uint64, unfolded int) {
	b.Queue(`INSERT INTO lineage_head (store, epoch, first, n, id, numbers, folded, unfolded) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (store, epoch) DO UPDATE SET first = excluded.first, n = excluded.n, id = excluded.id, numbers = excluded.numbers, folded = excluded.folded, unfolded = excluded.unfolded`,
		l.store, int64(h.epoch), int64(h.first), int64(h.Number), int64(h.ID), encodeCounts(counts), int64(folded), int32(unfolded))
}

// append writes a row after the head. After errBehind no attempt can write the row any more, not even
// an earlier one: the log continues differently.
func (l *log) append(ctx context.Context, h head, r *logRow, d backend.Durability) error {
	return l.transaction(ctx, d, func(b *pgx.Batch) {
		l.queueLockAt(b, h, r.absent)
		l.queueRow(b, h.epoch, r)
	})
}

// write repeats append until the outcome is known: nil if the row is in the log, errBehind if it is
// not and will not be. The key of the row lets it be written once only. It is ErrUncertain when
// patience ends.
func (l *log) write(ctx context.Context, h head, r *logRow, d backend.Durability) error {
	return l.resolve(ctx, h, r, d, l.append(ctx, h, r, d))
}

// resolve continues a write after an attempt, which failed with the given error or was done. A failed one may still run on the
// server: then the next one waits for it.
func (l *log) resolve(ctx context.Context, h head, r *logRow, d backend.Durability, failed error) error {
	maybe := mayHaveWritten(failed)
	if !maybe && !isTransient(failed) {
		return explain(failed)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, cancelAttempts := context.WithTimeout(ctx, patience+time.Second) // the last one has time for an answer
	defer cancelAttempts()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		select {
		case <-limited.Done():
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
func (l *log) confirm(ctx context.Context, r *logRow) error {
	err := l.flush(ctx, head{first: r.first, Cursor: r.last()})
	if errors.Is(err, errDiverged) {
		return errBehind
	}
	return err
}

// lock begins a write transaction, and reads the latest state and what is needed in it. It is errCollected if the epoch is not
// that of the state that is known.
func (l *log) lock(ctx context.Context, k known, n need) (*writeTx, stateRead, error) {
	conn, err := l.acquire(ctx)
	if err != nil {
		return nil, stateRead{}, err
	}
	t := &writeTx{l, conn, k.epoch}
	// What follows the lock are separate statements, so that their snapshots are taken when the lock is held. They are
	// sent together.
	var b pgx.Batch
	var r stateRead
	begin(&b)
	b.Queue(lockSQL, l.store)
	l.queueState(&b, k, &r)
	n.queue(&b, l, k.epoch, unlimited, &r.found)
	if err = send(ctx, conn, &b); err == nil && r.state.unfilled {
		err = errUnfilled
	} else if err == nil && r.state.epoch != k.epoch {
		err = errCollected
	}
	if err != nil {
		t.rollback()
		t = nil
	}
	return t, r, err
}

// read reads in the transaction. No other transaction changes the state that it reads.
func (t *writeTx) read(ctx context.Context, n need) (f fetchResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	n.queue(&b, t.log, t.epoch, unlimited, &f)
	return f, send(ctx, t.conn, &b)
}

// append writes a row and ends the transaction. After an error the row may have been written.
func (t *writeTx) append(ctx context.Context, r *logRow, d backend.Durability) error {
	var b pgx.Batch
	queueDurability(&b, d)
	t.log.queueRow(&b, t.epoch, r)
	return t.commit(ctx, &b)
}

// write is append until the outcome is known. See log.write. h is the head before the row.
func (t *writeTx) write(ctx context.Context, h head, r *logRow, d backend.Durability) error {
	limited, cancel := context.WithTimeout(ctx, writeTime)
	err := t.append(limited, r, d)
	cancel()
	return t.log.resolve(ctx, h, r, d, err)
}
