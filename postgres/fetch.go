package postgres

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// need is what is read from the server at once.
type need struct {
	read.Need
	pages []entryPage
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

// entryPage is the first or, if descending, the last entries of a range.
type entryPage struct {
	read.Range
	limit      int
	descending bool
}

// fetchResult is what was read. Entries that do not exist are left out.
type fetchResult struct {
	keys   map[string][]byte
	ranges [][]index.Entry
	lasts  []index.Entry // without a key where the range is empty
	pages  []foundPage
	rows   []logRow
}

// foundPage is a page as the table has it, and where the range continues there, if it does. See stateReader.page.
type foundPage struct {
	entries []index.Entry
	more    bool
	next    []byte // the last key that was read
}

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
func (n *need) queue(b *pgx.Batch, l *log, epoch uint64, number int64, into *fetchResult) {
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
func (f *fetchResult) readKeys(rows pgx.Rows, ks [][]byte) error {
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

func (f *fetchResult) readRanges(rows pgx.Rows, n *need) error {
	f.ranges = make([][]index.Entry, len(n.Ranges))
	err := n.eachOf(rows, func(i int64, e index.Entry) { f.ranges[i-1] = append(f.ranges[i-1], e) })
	for i, r := range n.Ranges {
		f.ranges[i] = inRange(f.ranges[i], r.From, r.To)
	}
	return err
}

func (f *fetchResult) readLasts(rows pgx.Rows, n *need) error {
	f.lasts = make([]index.Entry, len(n.Lasts))
	return n.eachOf(rows, func(i int64, e index.Entry) { f.lasts[i-1] = e })
}

func (f *foundPage) read(rows pgx.Rows, n *need, p entryPage) error {
	var key, value []byte
	count := 0
	_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		count++
		err := n.tolerate(key, f.add(key, value, p.descending))
		key, value = nil, nil
		return err
	})
	f.more = count == p.limit
	return err
}

// add adds what the next row has.
func (f *foundPage) add(key, value []byte, descending bool) error {
	from := len(f.entries)
	err := eachRestored(key, value, func(e index.Entry) { f.entries = append(f.entries, e) })
	f.next = key
	switch {
	case !isSpan(key):
	case descending:
		slices.Reverse(f.entries[from:])
	default:
		f.next = lastInGroup(key)
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
