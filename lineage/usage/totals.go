package usage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/message"
)

// sums are sums of figures.
type sums struct {
	answers, requests, covers int64
	tokens                    [message.TokenKinds]int64
	cost, costs               int64 // the cost that sources state, in 10^-12 dollars, and the number of answers with one
}

// add adds sums or, with factor -1, subtracts them. The results are limited to most in both directions.
func (s *sums) add(o *sums, factor int64) {
	add := func(to *int64, n int64) {
		switch n *= factor; {
		case n > 0 && *to > most-n:
			*to = most
		case n < 0 && *to < -most-n:
			*to = -most
		default:
			*to += n
		}
	}
	add(&s.answers, o.answers)
	add(&s.requests, o.requests)
	add(&s.covers, o.covers)
	for k := range s.tokens {
		add(&s.tokens[k], o.tokens[k])
	}
	add(&s.cost, o.cost)
	add(&s.costs, o.costs)
}

// totalKey is the key of a row of the totals.
type totalKey struct {
	run, quarter, model int64
	bracket             int
	known               uint8
}

func quarterOf(time int64) int64 {
	if time < 0 {
		return -1
	}
	return time / quarter
}

// total adds an answer to the totals or, with factor -1, removes it.
func (f *writer) total(c *counted, factor int64) {
	k := totalKey{run: c.run, quarter: quarterOf(c.time), model: c.model, known: c.known}
	for _, start := range f.starts {
		if c.input() > start {
			k.bracket++
		}
	}
	s := f.totals[k]
	if s == nil {
		s = &sums{}
		f.totals[k] = s
	}
	s.add(&c.sums, factor)
}

// most limits sums, so that they cannot overflow.
const most = 9_000_000_000_000_000_000

// addTotals writes the changes of the totals.
func (f *writer) addTotals(ctx context.Context) error {
	for k, s := range f.totals {
		if *s == (sums{}) {
			continue
		}
		t := &s.tokens
		err := f.Exec(ctx, `INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
			answers = answers + excluded.answers, requests = requests + excluded.requests, covers = MIN(covers + excluded.covers, `+mostText+`),
			t0 = MIN(t0 + excluded.t0, `+mostText+`), t1 = MIN(t1 + excluded.t1, `+mostText+`), t2 = MIN(t2 + excluded.t2, `+mostText+`),
			t3 = MIN(t3 + excluded.t3, `+mostText+`), t4 = MIN(t4 + excluded.t4, `+mostText+`), t5 = MIN(t5 + excluded.t5, `+mostText+`),
			cost = MIN(cost + excluded.cost, `+mostText+`), costs = costs + excluded.costs`,
			k.run, k.quarter, k.model, k.bracket, int64(k.known), s.answers, s.requests, s.covers, t[0], t[1], t[2], t[3], t[4], t[5], s.cost, s.costs)
		if err != nil {
			return err
		}
		if s.answers < 0 {
			err := f.Exec(ctx, `DELETE FROM totals WHERE run = ? AND quarter = ? AND model = ? AND bracket = ? AND known = ? AND answers = 0`,
				k.run, k.quarter, k.model, k.bracket, int64(k.known))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

var mostText = fmt.Sprint(int64(most))
