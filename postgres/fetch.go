package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// need is what is read from the server at once.
type need struct {
	read.Need
	pages []page
	rows  []uint64 // of the log, by number; if they are large, only the first ones are found
	// damaged, when not nil, is called for what is damaged in ranges and pages, perhaps more than once. If it is nil, damage is
	// an error.
	damaged func(key []byte, what string)
}

// tolerate returns an error of a row of the table, unless it is damage that damaged accepts.
func (n *need) tolerate(key []byte, err error) error {
	var damage *backend.CorruptError
	if n.damaged == nil || !errors.As(err, &damage) {
		return err
	}
	n.damaged(key, damage.What)
	return nil
}

// page is the first or, if descending, the last entries of a range.
type page struct {
	read.Range
	limit      int
	descending bool
}

// found is what was read. Entries that do not exist are left out.
type found struct {
	keys   map[string][]byte
	ranges [][]index.Entry
	lasts  []index.Entry // without a key where the range is empty
	pages  []foundPage
	rows   []row
}

// foundPage is a page as the table has it, and where the range continues there, if it does. See table.page.
type foundPage struct {
	entries []index.Entry
	more    bool
	next    []byte // the last key that was read
}

// stateSQL reads the latest state. Entries can be read as of states from the horizon on. The last columns are whether the log
// has a row that is known, the number of unfolded changes, the sizes of these, and the changes as one value: arrays of bytes
// come as text, which takes long to decode. Changes that the reader knows from a state after the same fold are left out. atSQL
// does not read changes.
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

// The lookups of entries as of a state. $3 is minus its number: older versions have a larger age, so the first version
// that a lookup finds is the newest that counts. Each lookup has a limit, so that a server without statistics uses the
// primary key.
const (
	keysSQL = `SELECT k.i, e.value FROM unnest($4::bytea[]) WITH ORDINALITY AS k (key, i), LATERAL (
  SELECT value FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key = k.key AND age >= $3 ORDER BY age LIMIT 1) e WHERE e.value IS NOT NULL`
	rangesSQL = `SELECT r.i, e.key, e.value FROM unnest($4::bytea[], $5::bytea[]) WITH ORDINALITY AS r (low, high, i), LATERAL (
  SELECT DISTINCT ON (key) key, value FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key >= r.low AND key < r.high AND age >= $3 ORDER BY key, age) e
WHERE e.value IS NOT NULL ORDER BY r.i, e.key`
	// lastsSQL is for groups of spans, which are never deleted in an epoch.
	lastsSQL = `SELECT r.i, e.key, e.value FROM unnest($4::bytea[], $5::bytea[]) WITH ORDINALITY AS r (low, high, i), LATERAL (
  SELECT key, value FROM lineage_entry WHERE store = $1 AND epoch = $2 AND age >= $3
    AND key = (SELECT key FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key >= r.low AND key < r.high AND age >= $3 ORDER BY key DESC LIMIT 1) ORDER BY age LIMIT 1) e`
	pageSQL = `SELECT key, value FROM (
  SELECT DISTINCT ON (key) key, value FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key >= $4 AND key < $5 AND age >= $3 ORDER BY key, age) e
WHERE value IS NOT NULL ORDER BY key LIMIT $6`
	// pageDownSQL goes backwards through the primary key.
	pageDownSQL = `SELECT key, value FROM lineage_entry e WHERE store = $1 AND epoch = $2 AND key >= $4 AND key < $5 AND age >= $3 AND value IS NOT NULL
  AND age = (SELECT age FROM lineage_entry WHERE store = $1 AND epoch = $2 AND key = e.key AND age >= $3 ORDER BY age LIMIT 1)
ORDER BY key DESC LIMIT $6`
	// rowsSQL reads rows of the log up to a size: the last one may exceed it.
	rowsSQL = `SELECT n, count, id, data, $3::bigint FROM (
  SELECT l.*, k.i, sum(octet_length(l.data)) OVER (ORDER BY k.i) - octet_length(l.data) AS before
  FROM unnest($2::bigint[]) WITH ORDINALITY AS k (n, i), LATERAL (
    SELECT n, count, id, data FROM lineage_log WHERE store = $1 AND n = k.n LIMIT 1) l) sized
WHERE before < $4 ORDER BY i`
)

// queue adds the statements that read as of a state.
func (n *need) queue(b *pgx.Batch, l *log, epoch uint64, number int64, into *found) {
	add := func(sql string, args ...any) *pgx.QueuedQuery {
		return b.Queue(sql, append([]any{l.store, int64(epoch), -number}, args...)...)
	}
	if len(n.Keys) > 0 {
		ks := storedKeys(n.Keys)
		add(keysSQL, ks).Query(func(rows pgx.Rows) error { return into.readKeys(rows, ks) })
	}
	if len(n.Ranges) > 0 {
		low, high := bounds(n.Ranges)
		add(rangesSQL, low, high).Query(func(rows pgx.Rows) error { return into.readRanges(rows, n) })
	}
	if len(n.Lasts) > 0 {
		low, high := bounds(n.Lasts)
		add(lastsSQL, low, high).Query(func(rows pgx.Rows) error { return into.readLasts(rows, n) })
	}
	into.pages = make([]foundPage, len(n.pages))
	for i, p := range n.pages {
		sql := pageSQL
		if p.descending {
			sql = pageDownSQL
		}
		low, high := storedBounds(p.From, p.To)
		add(sql, low, high, p.limit).Query(func(rows pgx.Rows) error { return into.pages[i].read(rows, n, p) })
	}
	if len(n.rows) > 0 {
		numbers := make([]int64, len(n.rows))
		for i, n := range n.rows {
			numbers[i] = int64(n)
		}
		b.Queue(rowsSQL, l.store, numbers, int64(epoch), mostRead).Query(func(rows pgx.Rows) (err error) {
			into.rows, err = readRows(rows)
			return err
		})
	}
}

// readKeys reads the entries of keys of the table.
func (f *found) readKeys(rows pgx.Rows, ks [][]byte) error {
	f.keys = make(map[string][]byte, len(ks))
	var i int64
	var value []byte
	_, err := pgx.ForEachRow(rows, []any{&i, &value}, func() error {
		err := eachRestored(ks[i-1], value, func(e index.Entry) { f.keys[string(e.Key)] = e.Value })
		value = nil
		return err
	})
	return err
}

func (f *found) readRanges(rows pgx.Rows, n *need) error {
	f.ranges = make([][]index.Entry, len(n.Ranges))
	err := n.eachOf(rows, func(i int64, e index.Entry) { f.ranges[i-1] = append(f.ranges[i-1], e) })
	for i, r := range n.Ranges {
		f.ranges[i] = inRange(f.ranges[i], r.From, r.To)
	}
	return err
}

func (f *found) readLasts(rows pgx.Rows, n *need) error {
	f.lasts = make([]index.Entry, len(n.Lasts))
	return n.eachOf(rows, func(i int64, e index.Entry) { f.lasts[i-1] = e })
}

func (p *foundPage) read(rows pgx.Rows, n *need, of page) error {
	var key, value []byte
	count := 0
	_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		count++
		err := n.tolerate(key, p.add(key, value, of.descending))
		key, value = nil, nil
		return err
	})
	p.more = count == of.limit
	return err
}

// add adds what the next row has.
func (p *foundPage) add(key, value []byte, descending bool) error {
	from := len(p.entries)
	err := eachRestored(key, value, func(e index.Entry) { p.entries = append(p.entries, e) })
	p.next = key
	switch {
	case !isSpan(key):
	case descending:
		slices.Reverse(p.entries[from:])
	default:
		p.next = lastInGroup(key)
	}
	return err
}

func bounds(ranges []read.Range) (low, to [][]byte) {
	for _, r := range ranges {
		l, h := storedBounds(r.From, r.To)
		low, to = append(low, l), append(to, h)
	}
	return low, to
}

func (n *need) eachOf(rows pgx.Rows, take func(int64, index.Entry)) error {
	var i int64
	var key, value []byte
	_, err := pgx.ForEachRow(rows, []any{&i, &key, &value}, func() error {
		err := n.tolerate(key, eachRestored(key, value, func(e index.Entry) { take(i, e) }))
		key, value = nil, nil
		return err
	})
	return err
}

// queueState adds the statement that reads the state. there is set if the log has the row of the known state. If it is not set,
// a part of what is unfolded may be missing.
func (l *log) queueState(b *pgx.Batch, k known, st *state, horizon *uint64, there *bool) {
	b.Queue(stateSQL, l.store, int64(k.first), int64(k.ID), k.count(), int64(k.epoch), int64(k.folded), int32(k.unfolded.rows())).
		QueryRow(l.readState(k, true, st, horizon, there))
}

// queueAt is queueState without what is unfolded.
func (l *log) queueAt(b *pgx.Batch, at head, st *state, horizon *uint64, there *bool) {
	b.Queue(atSQL, l.store, int64(at.first), int64(at.ID), at.count()).QueryRow(l.readState(known{head: at}, false, st, horizon, there))
}

// readState reads the row of queueState, or that of queueAt, which has no changes.
func (l *log) readState(k known, withChanges bool, st *state, horizon *uint64, there *bool) func(pgx.Row) error {
	return func(r pgx.Row) error {
		var now, epoch, forgets, folded, unfolded int64
		var first, n, id, gone *int64
		var counts []byte
		var sizes []int32
		var changes []byte
		err := r.Scan(&now, &epoch, &first, &n, &id, &counts, &gone, &forgets, &folded, &st.unfilled, &st.collecting, there, &unfolded, &sizes, &changes)
		if errors.Is(err, pgx.ErrNoRows) {
			return errRemoved
		}
		if err != nil {
			return err
		}
		l.clock.set(uint64(now))
		*there = *there || k.first == 0
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
		if got := st.unfolded.rows(); *there && withChanges && int64(got) != unfolded { // the next changes would overwrite others
			return &backend.CorruptError{File: "lineage_former", What: fmt.Sprintf("the changes of %d rows instead of %d", got, unfolded)}
		}
		st.first, st.Cursor, *horizon = uint64(*first), backend.Cursor{Number: uint64(*n), ID: uint64(*id)}, uint64(*gone)
		return decodeCounts(counts, &st.counts)
	}
}

// unlimited is the number of a state that is read without a limit: all versions in the snapshot of the server count.
const unlimited = 1<<63 - 1

// latest reads the latest state, and in it what is needed, in one round trip unless there was a collection after a state
// that is known, or the log does not have its row. there reports whether it has.
func (l *log) latest(ctx context.Context, k known, n need) (st state, f found, there bool, err error) {
	there = true
	for range mostRetries {
		var has bool
		err = l.snapshot(ctx, func(b *pgx.Batch) {
			var horizon uint64
			st, f, has = state{}, found{}, false
			l.queueState(b, k, &st, &horizon, &has)
			n.queue(b, l, k.epoch, unlimited, &f)
		})
		if err != nil || has && st.epoch == k.epoch {
			break
		}
		there, k = false, known{head: head{epoch: st.epoch}}
	}
	if err == nil && st.unfilled {
		err = errUnfilled
	}
	return st, f, there, err
}

// at reads what is needed as of a state. It is errGone if that can no longer be read.
func (l *log) at(ctx context.Context, at head, n need) (f found, err error) {
	var st state
	var horizon uint64
	var there bool
	err = l.snapshot(ctx, func(b *pgx.Batch) {
		st, f, there, horizon = state{}, found{}, false, 0
		l.queueAt(b, at, &st, &horizon, &there) // its unfolded entries are known
		n.queue(b, l, at.epoch, int64(at.Number), &f)
	})
	if err == nil && (st.epoch != at.epoch || !there || horizon > at.Number) {
		err = errGone
	}
	return f, err
}

// snapshot is read until the server answers, or patience ends.
func (l *log) snapshot(ctx context.Context, statements func(*pgx.Batch)) error {
	return withRetry(ctx, func(ctx context.Context) error { return l.read(ctx, statements) })
}
