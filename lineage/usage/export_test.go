package usage

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lineage-store/lineage/internal/derivedfile"
)

// SetWindowLimit sets the number of changed subjects and records at which a transaction ends. It returns what it was.
func SetWindowLimit(n int) int {
	was := windowLimit
	windowLimit = n
	return was
}

// Format is the format of the file.
const Format = format

// CountStatements returns the number of queries for several rows of the reports that do makes.
func CountStatements(do func()) (n int) {
	was := each
	defer func() { each = was }()
	each = func(ctx context.Context, q derivedfile.Querier, do func(scan func(...any) error) error, query string, args ...any) error {
		n++
		return was(ctx, q, do, query, args...)
	}
	do()
	return n
}

// SetTogether sets the number of answers whose sightings are in memory together. It returns what it was.
func SetTogether(n int) int {
	was := mostTogether
	mostTogether = n
	return was
}

// Whole returns all of the data in a directory, also what nothing sees, in a fixed order. It does not depend on the numbers of rows, and
// on which sightings and counters are together in one.
func Whole(ctx context.Context, dir string) (all []string, err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, FileName))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	add := func(scan func(...any) error) error {
		var s string
		err := scan(&s)
		all = append(all, s)
		return err
	}
	const threadOf = `IFNULL((SELECT hex(t.id) || t.incarnation FROM threads t WHERE t.number = thread), '')`
	err = each(ctx, db, add, `
		SELECT 'total ' || hex(r.id) || ' ' || s.quarter || ' ' || m.name || ' ' || s.bracket || ' ' || s.known || ' ' || s.answers || ' ' || s.requests || ' ' || s.t0 || ' ' || s.t4
			FROM totals s LEFT JOIN runs r ON r.number = s.run LEFT JOIN models m ON m.number = s.model
		UNION ALL SELECT 'about ' || `+threadOf+` || agent || project || git_branch || machine FROM about
		UNION ALL SELECT 'context ' || hex(id) || hex(parent) || aside || `+threadOf+` FROM contexts
		UNION ALL SELECT 'branch ' || hex(thread) || name || hex(context) FROM branches
		UNION ALL SELECT 'thread ' || hex(id) || incarnation || user || keeps FROM threads
		UNION ALL SELECT 'model ' || name || ' ' || provider || ' ' || tier FROM models
		UNION ALL SELECT 'run ' || hex(id) || after || ' ' || reached || `+threadOf+` FROM runs
		UNION ALL SELECT 'tip ' || hex(p.id) || ' ' || hex(r.id) || ' ' || p.seq FROM tips p LEFT JOIN runs r ON r.number = p.run
		UNION ALL SELECT 'sightings without a run' FROM sightings WHERE run NOT IN (SELECT number FROM runs)
		UNION ALL SELECT 'sightings not between their steps' FROM sightings WHERE first > last
		UNION ALL SELECT 'counters without a run' FROM counters WHERE run NOT IN (SELECT number FROM runs)`)
	if err != nil {
		return nil, err
	}
	rows := make(map[int64]bool)
	leading := make(map[keyed]bool)
	err = each(ctx, db, func(scan func(...any) error) error {
		var start int64
		var b []byte
		if err := scan(&start, &b); err != nil {
			return err
		}
		keys, err := decodeKeys(start, b)
		for _, k := range keys {
			leading[k] = true
		}
		return err
	}, `SELECT start, sightings FROM keys`)
	if err != nil {
		return nil, err
	}
	err = each(ctx, db, func(scan func(...any) error) error {
		var number int64
		var run, model string
		var b []byte
		if err := scan(&number, &run, &b); err != nil {
			return err
		}
		rows[number] = true
		return decodeSightings(0, b, func(s *sighting) error {
			if s.keyed && !leading[keyed{s.key.hash(), number}] {
				all = append(all, "sighting without a key")
			}
			if err := db.QueryRowContext(ctx, `SELECT name FROM models WHERE number = ?`, s.model).Scan(&model); err != nil {
				return err
			}
			all = append(all, fmt.Sprintf("sighting %s %d %d %v %d %s %v", run, s.seq, s.part, s.keyed, s.time, model, s.tokens))
			return nil
		})
	}, `SELECT s.number, hex(r.id), s.answers FROM sightings s JOIN runs r ON r.number = s.run`)
	if err != nil {
		return nil, err
	}
	for k := range leading {
		if !rows[k.row] {
			all = append(all, "key of a row that is not there")
		}
	}
	err = each(ctx, db, func(scan func(...any) error) error {
		var run string
		var first int64
		var b []byte
		if err := scan(&run, &first, &b); err != nil {
			return err
		}
		counters, err := decodeCounters(first, b)
		for _, c := range counters {
			all = append(all, fmt.Sprintf("counter %s %d %v", run, c.seq, c.total.Array()))
		}
		return err
	}, `SELECT hex(r.id), c.first, c.totals FROM counters c JOIN runs r ON r.number = c.run`)
	slices.Sort(all)
	return all, err
}
