package usage

import "context"

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
