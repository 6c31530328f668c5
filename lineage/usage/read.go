package usage

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
)

// fromTotals reports whether the query can be answered from the totals. They are kept for the whole store, by quarter
// of an hour, and split at the amounts of input at which the built-in prices change.
func (r *reporter) fromTotals(ctx context.Context) (bool, error) {
	q := r.q
	if !q.Thread.IsZero() || len(q.Users) > 0 || !q.Prices.ByQuarter() || !onQuarter(q.Since) || !onQuarter(q.Until) {
		return false, nil
	}
	for _, key := range q.By {
		if (key == Day || key == Week || key == Month) && !wholeQuarters(q.Zone) {
			return false, nil
		}
	}
	starts, err := r.starts(ctx)
	for _, start := range q.Prices.Starts() {
		if !slices.Contains(starts, start) {
			return false, err
		}
	}
	return true, err
}

func (r *reporter) starts(ctx context.Context) (all []int64, err error) {
	err = each(ctx, r.tx, func(scan func(...any) error) error {
		var start int64
		err := scan(&start)
		all = append(all, start)
		return err
	}, `SELECT start FROM starts ORDER BY start`)
	return all, err
}

func onQuarter(t time.Time) bool {
	return t.IsZero() || t.UnixMilli()%quarter == 0 && t.Nanosecond() == 0
}

// wholeQuarters reports whether days in a zone have always begun at a quarter of an hour, since there are models.
func wholeQuarters(zone *time.Location) bool {
	for year := 2000; year < 2060; year++ {
		for _, month := range []time.Month{time.January, time.July} {
			if _, offset := time.Date(year, month, 1, 0, 0, 0, 0, zone).Zone(); offset%(15*60) != 0 {
				return false
			}
		}
	}
	return true
}

// readTotals computes the report from the totals.
func (r *reporter) readTotals(ctx context.Context) error {
	starts, err := r.starts(ctx)
	if err != nil {
		return err
	}
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !r.q.Since.IsZero() {
		since = r.q.Since.UnixMilli() / quarter
	}
	if !r.q.Until.IsZero() {
		until = r.q.Until.UnixMilli() / quarter
	}
	with, where, args, err := r.candidates(ctx)
	if err != nil {
		return err
	}
	several := make(map[int64]bool) // runs that several branches see parts of
	err = each(ctx, r.tx, func(scan func(...any) error) error {
		var g answerGroup
		var bracket int
		t := &g.tokens
		err := scan(&g.run, &g.time, &g.model, &bracket, &g.known, &g.requests, &g.covers, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &g.cost, &g.costs)
		if err != nil {
			return err
		}
		if bracket < 0 || bracket > len(starts) {
			return fmt.Errorf("bracket %d: %w", bracket, derivedfile.ErrUseless)
		}
		if bracket > 0 {
			g.input = starts[bracket-1] + 1
		}
		if g.time >= 0 {
			g.time *= quarter
		}
		if r.byBranch() {
			const branches = true
			p, err := r.attributions.of(ctx, g.run, branches, 0)
			if err != nil || len(p.ends) > 1 {
				several[g.run] = true
				return err
			}
		}
		return r.add(ctx, &g)
	}, with+`SELECT run, quarter, model, bracket, known, requests, covers, t0, t1, t2, t3, t4, t5, cost, costs FROM totals WHERE quarter >= ? AND quarter < ?`+where, append(args, since, until)...)
	if err != nil {
		return err
	}
	return r.readRuns(ctx, several)
}

// candidates returns the beginning and the condition of a query for the runs that may count in Query.CountedIn: those of these
// threads, and those that they see. Others are left out by add.
func (r *reporter) candidates(ctx context.Context) (with, where string, args []any, err error) {
	if r.q.CountedIn == nil {
		return "", "", nil, nil
	}
	numbers := make([]int64, 0, len(r.q.CountedIn))
	for _, id := range r.q.CountedIn {
		var n int64
		err := r.attributions.get(ctx, threadNumber, id[:], &n)
		if err == nil {
			numbers = append(numbers, n)
		} else if !errors.Is(err, sql.ErrNoRows) {
			return "", "", nil, err
		}
	}
	list, err := json.Marshal(numbers)
	return fmt.Sprintf(inScope, `SELECT value FROM json_each(?)`, int64(derivedfile.Forever)) + ` `,
		` AND run IN (SELECT run FROM visible UNION SELECT r.number FROM scope CROSS JOIN runs r ON r.thread = scope.thread AND r.thread > 0)`, []any{string(list)}, err
}

// threadNumber selects the number of the thread with an id that exists.
const threadNumber = `SELECT t.number FROM threads t JOIN about a ON a.thread = t.number WHERE t.id = ?`

// readRuns adds the answers that count in some runs, from the sightings.
func (r *reporter) readRuns(ctx context.Context, runs map[int64]bool) error {
	if len(runs) == 0 {
		return nil
	}
	numbers, err := json.Marshal(slices.Collect(maps.Keys(runs)))
	if err != nil {
		return err
	}
	keys := make(map[answerKey]bool)
	err = r.eachSighting(ctx, func(s *sighting) error {
		if s.keyed {
			keys[s.key] = true
			return nil
		}
		return r.count(ctx, []sighting{*s}, 0) // without a key, one is the answer
	}, reached+` WHERE s.run IN (SELECT value FROM json_each(?)) AND s.first <= r.reached`, string(numbers))
	if err != nil {
		return err
	}
	return r.eachAnswer(ctx, keys, func(all []sighting) error {
		if c, ok := choose(all); !ok || !runs[c.run] {
			return nil // it is in the totals
		}
		return r.count(ctx, all, 0)
	})
}

// mostTogether is the number of answers whose sightings are in memory together.
var mostTogether = 1 << 16

// eachAnswer calls a function with the visible sightings of each of the answers with some keys.
func (r *reporter) eachAnswer(ctx context.Context, keys map[answerKey]bool, do func(all []sighting) error) error {
	inOrder := slices.SortedFunc(maps.Keys(keys), func(a, b answerKey) int { return bytes.Compare(a[:], b[:]) })
	for batch := range slices.Chunk(inOrder, mostTogether) {
		if err := r.eachOf(ctx, batch, do); err != nil {
			return err
		}
	}
	return nil
}

// eachOf is eachAnswer for a few answers, given their keys in order.
func (r *reporter) eachOf(ctx context.Context, keys []answerKey, do func(all []sighting) error) error {
	hashes := make(map[int64]bool, len(keys))
	sightings := make(map[answerKey][]sighting, len(keys))
	for i := range keys {
		hashes[keys[i].hash()] = true
		sightings[keys[i]] = nil
	}
	list, err := json.Marshal(slices.Sorted(maps.Keys(hashes)))
	if err != nil {
		return err
	}
	rows := make(map[int64]bool)
	err = each(ctx, r.tx, func(scan func(...any) error) error {
		var start int64
		var b []byte
		if err := scan(&start, &b); err != nil {
			return err
		}
		all, err := decodeKeys(start, b)
		for _, k := range all {
			if hashes[k.hash] {
				rows[k.row] = true
			}
		}
		return err
	}, `SELECT start, sightings FROM keys WHERE start IN (SELECT (SELECT MAX(start) FROM keys WHERE start <= h.value) FROM json_each(?) h)`, string(list))
	if err != nil {
		return err
	}
	if list, err = json.Marshal(slices.Sorted(maps.Keys(rows))); err != nil {
		return err
	}
	err = r.eachSighting(ctx, func(s *sighting) error {
		if all, wanted := sightings[s.key]; wanted && s.keyed {
			sightings[s.key] = append(all, *s)
		}
		return nil
	}, reached+` WHERE s.number IN (SELECT value FROM json_each(?)) AND s.first <= r.reached`, string(list))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := do(sightings[key]); err != nil {
			return err
		}
	}
	return nil
}

// reached selects sightings at visible steps.
const reached = `SELECT s.run, r.reached, s.answers FROM sightings s JOIN runs r ON r.number = s.run`

// eachSighting calls a function with each sighting of a query for runs, last steps and rows, up to that step.
func (r *reporter) eachSighting(ctx context.Context, do func(*sighting) error, query string, args ...any) error {
	return each(ctx, r.tx, func(scan func(...any) error) error {
		var run, last int64
		var answers []byte
		if err := scan(&run, &last, &answers); err != nil {
			return err
		}
		return decodeSightings(run, answers, func(s *sighting) error {
			if s.seq > last {
				return nil
			}
			return do(s)
		})
	}, query, args...)
}

// inScope selects the history that a query covers: runs up to a step. The order of its joins is stated, because SQLite does not
// know how many threads there are, and may list them again for each tip.
const inScope = `WITH RECURSIVE
	scope (thread) AS MATERIALIZED (%s),
	seen (run, seq) AS (
		SELECT p.run, p.seq FROM scope CROSS JOIN tips p ON p.thread = scope.thread
		UNION SELECT r.number, %d FROM scope CROSS JOIN runs r ON r.thread = scope.thread AND r.thread > 0 JOIN threads t ON t.number = r.thread AND t.keeps
		UNION SELECT r.parent, r.after FROM seen s JOIN runs r ON r.number = s.run WHERE r.parent > 0
	),
	visible (run, seq) AS (SELECT run, MAX(seq) FROM seen GROUP BY run)`

// readSightings computes the report from the sightings in the history that the query covers.
func (r *reporter) readSightings(ctx context.Context) error {
	query, args, err := r.covered(ctx)
	if err != nil {
		return err
	}
	byKey := make(map[answerKey][]sighting)
	var alone []sighting
	err = r.eachSighting(ctx, func(s *sighting) error {
		if s.keyed {
			byKey[s.key] = append(byKey[s.key], *s)
		} else {
			alone = append(alone, *s)
		}
		return nil
	}, query, args...)
	if err != nil {
		return err
	}
	first := make(map[answerKey]int64) // the runs in which the answers of a thread count
	if r.thread != 0 {
		keys := make(map[answerKey]bool, len(byKey))
		for key := range byKey {
			keys[key] = true
		}
		err = r.eachAnswer(ctx, keys, func(everywhere []sighting) error {
			if c, ok := choose(everywhere); ok {
				first[everywhere[0].key] = c.run
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range alone {
		if err := r.count(ctx, alone[i:i+1], 0); err != nil {
			return err
		}
	}
	for key, all := range byKey {
		if err := r.count(ctx, all, first[key]); err != nil {
			return err
		}
	}
	return nil
}

// covered returns the query for the sightings in the history that the report covers. It sets the thread of the report.
func (r *reporter) covered(ctx context.Context) (query string, args []any, err error) {
	scope := ""
	switch {
	case !r.q.Thread.IsZero():
		scope = threadNumber
		args = append(args, r.q.Thread[:])
		if err := each(ctx, r.tx, func(scan func(...any) error) error { return scan(&r.thread) }, scope, args...); err != nil {
			return "", nil, err
		}
	case len(r.q.Users) > 0:
		for _, user := range r.q.Users {
			args = append(args, user)
		}
		marks := "?" + strings.Repeat(", ?", len(args)-1)
		scope = `SELECT a.thread FROM about a JOIN threads t ON t.number = a.thread WHERE t.user IN (` + marks + `)`
	default:
		return reached + ` WHERE s.first <= r.reached`, nil, nil
	}
	return fmt.Sprintf(inScope, scope, int64(derivedfile.Forever)) + ` SELECT s.run, v.seq, s.answers FROM visible v JOIN sightings s ON s.run = v.run AND s.first <= v.seq`, args, nil
}

// count adds an answer to the report, given its sightings in the covered history. first is the run in which it counts, 0 if that is
// the run of one of them.
func (r *reporter) count(ctx context.Context, all []sighting, first int64) error {
	c, ok := choose(all)
	if !ok {
		return nil
	}
	g := &answerGroup{run: c.run, seq: c.seq, model: c.model, time: c.time, input: c.input(), known: c.known, sums: c.sums}
	if r.thread != 0 {
		const branches = false
		p, err := r.attributions.of(ctx, cmp.Or(first, c.run), branches, 0)
		if err != nil {
			return err
		}
		g.shared = p.number != r.thread
	}
	return r.add(ctx, g)
}
