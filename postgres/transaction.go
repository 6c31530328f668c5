package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
)

// Every statement is in a transaction that has its limits from the start, because a client may stop at any time: the
// server then ends it. Limits are those of the transaction, so that poolers do not give them to others.

// lockSQL locks the store until the end of a transaction: no other process writes meanwhile.
const lockSQL = `SELECT epoch FROM lineage_store WHERE store = $1 FOR UPDATE`

const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED`

// limitsSQL limits the wait for a lock, a statement, and the wait for the client between statements.
const limitsSQL = `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true), set_config('idle_in_transaction_session_timeout', $3, true)`

// limitsAndDurabilitySQL sets the durability too.
const limitsAndDurabilitySQL = limitsSQL + `, set_config('synchronous_commit', $4, true)`

// begin adds the first statements of a transaction that writes or locks.
func begin(b *pgx.Batch) {
	b.Queue(beginSQL)
	b.Queue(limitsSQL, milliseconds(lockTime), milliseconds(writeTime), milliseconds(idleTime))
}

// send executes statements. It is ErrNewerFormat if a newer program has changed the tables since this one opened the store:
// each version that older programs must not use renames a column that they name.
func send(ctx context.Context, conn *pgxpool.Conn, statements *pgx.Batch) error {
	err := conn.SendBatch(ctx, statements).Close()
	if sqlState(err) != undefinedColumn {
		return err
	}
	version := 0
	var b pgx.Batch
	b.Queue(`ROLLBACK`)
	b.Queue(`SELECT version FROM lineage_schema`).QueryRow(func(row pgx.Row) error { return row.Scan(&version) })
	if conn.SendBatch(ctx, &b).Close() == nil && version > len(migrations) {
		err = fmt.Errorf("%w: %w", newerTables(version), err)
	}
	return err
}

// read executes statements that read in one snapshot of the server, in one round trip.
func (l *log) read(ctx context.Context, statements func(*pgx.Batch)) error {
	most := readTime
	if end, ok := ctx.Deadline(); ok { // nobody waits for longer; the context ends first, so that its error is the answer
		most = min(most, max(time.Until(end), 0)+time.Second)
	}
	var b pgx.Batch
	b.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	b.Queue(limitsSQL, milliseconds(min(most, lockTime)), milliseconds(most), milliseconds(idleTime))
	statements(&b)
	b.Queue(`ROLLBACK`)
	conn, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return send(ctx, conn, &b)
}

// readOne reads one row in the same way.
func (l *log) readOne(ctx context.Context, sql string, args []any, into ...any) error {
	return l.read(ctx, func(b *pgx.Batch) {
		b.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(into...) })
	})
}

// queueDurability sets the durability of a transaction that has begun.
func queueDurability(b *pgx.Batch, d backend.Durability) {
	b.Queue(`SELECT set_config('synchronous_commit', $1, true)`, synchronous(d))
}

func synchronous(d backend.Durability) string {
	if d == backend.Full {
		return "on"
	}
	return "off"
}

// transaction executes statements in a transaction, in one round trip: it never waits for its client, only for
// locks. It is errBehind if one of them finds that the log has changed.
func (l *log) transaction(ctx context.Context, d backend.Durability, statements func(*pgx.Batch)) error {
	conn, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	b.Queue(beginSQL)
	most := answerTime(ctx)
	b.Queue(limitsAndDurabilitySQL, milliseconds(min(most, lockTime)), milliseconds(most), milliseconds(idleTime), synchronous(d))
	statements(&b)
	return (&writeTx{log: l, conn: conn}).commit(ctx, &b)
}

// answerTime returns how long the server may take for a statement, so that it answers before the context ends: then it is known
// that nothing was written.
func answerTime(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline()
	most := time.Until(end)
	return max(most-min(most/2, time.Second), time.Millisecond)
}

// commit executes statements and ends the transaction. After an error they may have been applied.
func (t *writeTx) commit(ctx context.Context, b *pgx.Batch) error {
	committing := false
	last := b.QueuedQueries[b.Len()-1]
	read := last.Fn
	last.Fn = func(results pgx.BatchResults) (err error) {
		if read != nil {
			err = read(results)
		} else {
			_, err = results.Exec()
		}
		committing = err == nil
		return err
	}
	b.Queue(`COMMIT`)
	err := send(ctx, t.conn, b)
	switch state := sqlState(err); {
	case err == nil:
		err = replicated(t.conn)
	case !committing && (state == divisionByZero || state == uniqueViolation):
		err = fmt.Errorf("%w: %w", errBehind, err)
	case state == noSuchKey:
		err = fmt.Errorf("%w: %w", ErrRestoring, err)
	case committing && state != "":
		err = commitError{err}
	case state == queryCanceled && t.conn.Conn().PgConn().TxStatus() == 'E': // the server itself says that the transaction failed
		err = fmt.Errorf("%w: %w", sqladapter.ErrBusy, err)
	}
	t.rollback()
	return err
}

// writeTx is a transaction that locks the store: no other process writes meanwhile.
type writeTx struct {
	log   *log
	conn  *pgxpool.Conn
	epoch uint64
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
