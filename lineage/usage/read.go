package usage

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
)

var each = derivedfile.Each

// fromTotals reports whether the query can be answered from the totals. They are kept for the whole store, by quarter
// of an hour, and split at the amounts of input at which the built-in prices change.
func (r *reporter) fromTotals(ctx context.Context) (bool, error) {
	q := r.q
	if !q.Thread.IsZero() || len(q.Users) > 0 || !q.Prices.ByQuarter() || !onQuarter(q.Since) || !onQuarter(q.Until) {
		return false, nil
	}
	for _, by := range q.By {
		if (by == Day || by == Week || by == Month) && !wholeQuarters(q.Zone) {
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
	several := make(map[int64]bool) // runs that several branches see parts of
	err = each(ctx, r.tx, func(scan func(...any) error) error {
		var g group
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
			p, err := r.places.of(ctx, g.run, true, 0)
			if err != nil || len(p.ends) > 1 {
				several[g.run] = true
				return err
			}
		}
		return r.add(ctx, &g)
	}, `SELECT run, quarter, model, bracket, known, requests, covers, t0, t1, t2, t3, t4, t5, cost, costs FROM totals WHERE quarter >= ? AND quarter < ?`, since, until)
	if err != nil {
		return err
	}
	return r.readRuns(ctx, several)
}

// readRuns adds the answers that count in some runs, from the sightings.
func (r *reporter) readRuns(ctx context.Context, runs map[int64]bool) error {
	done := make(map[answerKey]bool)
	for run := range runs {
		here, err := r.sightings(ctx, `FROM sightings s JOIN runs r ON r.number = s.run AND s.seq <= r.reached WHERE s.run = ?`, run)
		if err != nil {
			return err
		}
		for i := range here {
			s := &here[i]
			all := here[i : i+1]
			if s.keyed {
				if done[s.key] {
					continue
				}
				done[s.key] = true
				if all, err = r.sightings(ctx, seenOfKey, s.key[:]); err != nil {
					return err
				}
			}
			if c, ok := choose(all); ok && runs[c.run] {
				if err := r.count(ctx, all, nil); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sightings reads sightings, given the part of the query after the columns.
func (r *reporter) sightings(ctx context.Context, from string, args ...any) (all []sighting, err error) {
	err = each(ctx, r.tx, func(scan func(...any) error) error {
		s, err := scanned(scan)
		all = append(all, s)
		return err
	}, `SELECT `+columns+` `+from, args...)
	return all, err
}

// inScope selects the history that a query covers: runs up to a step.
const inScope = `WITH RECURSIVE
	scope (thread) AS (%s),
	seen (run, seq) AS (
		SELECT p.run, p.seq FROM tips p JOIN scope ON scope.thread = p.thread
		UNION SELECT r.number, %d FROM runs r JOIN scope ON scope.thread = r.thread JOIN threads t ON t.number = r.thread AND t.keeps
		UNION SELECT r.parent, r.after FROM seen s JOIN runs r ON r.number = s.run WHERE r.parent > 0
	),
	visible (run, seq) AS (SELECT run, MAX(seq) FROM seen GROUP BY run)`

// readSightings computes the report from the sightings in the history that the query covers.
func (r *reporter) readSightings(ctx context.Context) error {
	query, args := `SELECT `+columns+` FROM sightings s JOIN runs r ON r.number = s.run AND s.seq <= r.reached`, []any(nil)
	switch {
	case !r.q.Thread.IsZero():
		scope := `SELECT thread FROM about WHERE id = ?`
		args = append(args, r.q.Thread[:])
		if err := each(ctx, r.tx, func(scan func(...any) error) error { return scan(&r.thread) }, scope, args...); err != nil {
			return err
		}
		query = r.scoped(scope)
	case len(r.q.Users) > 0:
		marks := ""
		for i, user := range r.q.Users {
			if args = append(args, user); i > 0 {
				marks += ", "
			}
			marks += "?"
		}
		query = r.scoped(`SELECT a.thread FROM about a JOIN threads t ON t.number = a.thread WHERE t.user IN (` + marks + `)`)
	}
	byKey := make(map[answerKey][]sighting)
	var alone []sighting
	err := each(ctx, r.tx, func(scan func(...any) error) error {
		s, err := scanned(scan)
		if s.keyed {
			byKey[s.key] = append(byKey[s.key], s)
		} else if err == nil {
			alone = append(alone, s)
		}
		return err
	}, query, args...)
	if err != nil {
		return err
	}
	for i := range alone {
		if err := r.count(ctx, alone[i:i+1], nil); err != nil {
			return err
		}
	}
	for key, all := range byKey {
		if err := r.count(ctx, all, key[:]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reporter) scoped(scope string) string {
	return fmt.Sprintf(inScope, scope, int64(derivedfile.Forever)) + ` SELECT ` + columns + ` FROM visible v JOIN sightings s ON s.run = v.run AND s.seq <= v.seq`
}

// count adds an answer to the report, given its sightings in the covered history.
func (r *reporter) count(ctx context.Context, all []sighting, key []byte) error {
	c, ok := choose(all)
	if !ok {
		return nil
	}
	g := &group{run: c.run, seq: c.seq, model: c.model, time: c.time, input: c.input(), known: c.known, sums: c.sums}
	if r.thread != 0 {
		first := c.run
		if key != nil {
			everywhere, err := r.sightings(ctx, seenOfKey, key)
			if err != nil {
				return err
			}
			if c, ok := choose(everywhere); ok {
				first = c.run
			}
		}
		p, err := r.places.of(ctx, first, false, 0)
		if err != nil {
			return err
		}
		g.shared = p.number != r.thread
	}
	return r.add(ctx, g)
}
