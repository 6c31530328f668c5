package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// stateSQL reads the latest state. Entries can be read as of states from the horizon on. The last columns are
// whether the log has the row that the reader knows, the number of unfolded changes, their sizes, and the changes joined in one
// value, because arrays of bytes come as text, which takes long to decode. Changes that the reader knows from a state after the
// same fold are left out. atSQL does not read changes.
const (
	stateSQL = stateColumnsSQL + `, u.sizes, u.changes` + stateFromSQL + ` LEFT JOIN LATERAL (
  SELECT array_agg(coalesce(octet_length(f.changes), 0) ORDER BY f.part) AS sizes, string_agg(f.changes, '' ORDER BY f.part) AS changes
  FROM lineage_former f WHERE f.store = $1 AND f.epoch = s.epoch AND f.n = 0
    AND f.part >= CASE WHEN s.epoch = $5 AND h.folded = $6 THEN $7::integer ELSE 0 END AND f.part < h.unfolded) u ON true` + stateWhereSQL
	atSQL = stateColumnsSQL + `, NULL::integer[], NULL::bytea` + stateFromSQL + stateWhereSQL

	stateColumnsSQL = `SELECT extract(epoch FROM now())::bigint, s.epoch, h.first, h.n, h.id, h.numbers, h.horizon, coalesce(h.forgets, 0), coalesce(h.folded, 0),
  h.n IS NULL AND (SELECT l.n FROM lineage_log l WHERE l.store = $1 ORDER BY l.n LIMIT 1) IS NOT NULL,
  EXISTS (SELECT FROM lineage_collection c WHERE c.store = $1 AND c.epoch = s.epoch),
  EXISTS (SELECT FROM lineage_log l WHERE l.store = $1 AND l.n = $2 AND l.id = $3 AND l.count = $4),
  coalesce(h.unfolded, 0)`
	stateFromSQL = `
FROM lineage_store s LEFT JOIN lineage_head h ON h.store = $1 AND h.epoch = s.epoch`
	stateWhereSQL = ` WHERE s.store = $1`
)

// stateRead is a state that was read, with the entries that were requested.
type stateRead struct {
	state   state
	horizon uint64 // of the states of which entries can be read, the first
	// there is set if the log has the row of the state that was known before. If it is not set, a part of what is unfolded may
	// be missing.
	there bool
	found fetchResult
}

// queueState adds the statement that reads the latest state.
func (l *log) queueState(b *pgx.Batch, k known, into *stateRead) {
	b.Queue(stateSQL, l.store, int64(k.first), int64(k.ID), k.count(), int64(k.epoch), int64(k.folded), int32(k.unfolded.rows())).
		QueryRow(l.readState(k, true, into))
}

// queueAt is like queueState, without what is unfolded.
func (l *log) queueAt(b *pgx.Batch, at head, into *stateRead) {
	b.Queue(atSQL, l.store, int64(at.first), int64(at.ID), at.count()).QueryRow(l.readState(known{head: at}, false, into))
}

// readState reads the row of queueState, or that of queueAt, which has no changes.
func (l *log) readState(k known, withChanges bool, into *stateRead) func(pgx.Row) error {
	return func(r pgx.Row) error {
		st := &into.state
		var now, epoch, forgets, folded, unfolded int64
		var first, n, id, horizon *int64
		var counts []byte
		var sizes []int32
		var changes []byte
		err := r.Scan(&now, &epoch, &first, &n, &id, &counts, &horizon, &forgets, &folded, &st.unfilled, &st.collecting, &into.there, &unfolded, &sizes, &changes)
		if errors.Is(err, pgx.ErrNoRows) {
			return errRemoved
		}
		if err != nil {
			return err
		}
		l.clock.set(uint64(now))
		into.there = into.there || k.first == 0
		st.head, st.forgets, st.folded = head{epoch: uint64(epoch)}, uint64(forgets), uint64(folded)
		if st.epoch == k.epoch && st.folded == k.folded {
			st.unfolded = k.unfolded
		}
		later, err := decodeAllChanges(changes, sizes)
		if err != nil {
			return err
		}
		st.unfolded = st.unfolded.with(later, len(changes), len(sizes))
		if n == nil {
			return nil
		}
		if got := st.unfolded.rows(); into.there && withChanges && int64(got) != unfolded { // the next changes would overwrite others
			return &backend.CorruptError{File: "lineage_former", What: fmt.Sprintf("the changes of %d rows instead of %d", got, unfolded)}
		}
		st.first, st.Cursor, into.horizon = uint64(*first), backend.Cursor{Number: uint64(*n), ID: uint64(*id)}, uint64(*horizon)
		return decodeCounts(counts, &st.counts)
	}
}

// latest reads the latest state, and in it what is needed, in one round trip unless there was a collection after a state
// that is known, or the log does not have its row.
func (l *log) latest(ctx context.Context, k known, n need) (r stateRead, err error) {
	retry := false
	for range mostRetries {
		err = l.readRetried(ctx, func(b *pgx.Batch) {
			r = stateRead{}
			l.queueState(b, k, &r)
			n.queue(b, l, k.epoch, unlimited, &r.found)
		})
		if err != nil || r.there && r.state.epoch == k.epoch {
			break
		}
		retry, k = true, known{head: head{epoch: r.state.epoch}}
	}
	if r.there = r.there && !retry; err == nil && r.state.unfilled {
		err = errUnfilled
	}
	return r, err
}

// at reads what is needed as of a state. It is errGone if that can no longer be read.
func (l *log) at(ctx context.Context, at head, n need) (fetchResult, error) {
	var r stateRead
	err := l.readRetried(ctx, func(b *pgx.Batch) {
		r = stateRead{}
		l.queueAt(b, at, &r) // its unfolded entries are known
		n.queue(b, l, at.epoch, int64(at.Number), &r.found)
	})
	if err == nil && (r.state.epoch != at.epoch || !r.there || r.horizon > at.Number) {
		err = errGone
	}
	return r.found, err
}

// readRetried is read, retried until the server answers or patience ends.
func (l *log) readRetried(ctx context.Context, statements func(*pgx.Batch)) error {
	return withRetry(ctx, func(ctx context.Context) error { return l.read(ctx, statements) })
}

// unlimited is the number of a state that is read without a limit: all versions in the snapshot of the server count.
const unlimited = 1<<63 - 1
