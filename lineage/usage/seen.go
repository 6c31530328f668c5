package usage

import "context"

// seen returns the visible sightings of a key.
func (f *writer) seen(ctx context.Context, key answerKey) (all []sighting, err error) {
	if fresh, known := f.fresh[key]; known { // no other window has sightings of the key
		for s := fresh; s != nil; s = s.same {
			reached, err := f.reachOf(ctx, s.run)
			if err != nil {
				return nil, err
			}
			if s.seq <= reached {
				all = append(all, *s)
			}
		}
		return all, nil
	}
	rows, err := f.rowsOf(ctx, key)
	for _, row := range rows {
		if err == nil {
			err = f.sightings(ctx, func(s *sighting) error {
				if s.key != key || !s.keyed {
					return nil
				}
				reached, err := f.reachOf(ctx, s.run)
				if s.seq <= reached {
					all = append(all, *s)
				}
				return err
			}, `WHERE number = ?`, row)
		}
	}
	return all, err
}

// sightings calls a function with each of the sightings in some rows, given the end of the query.
func (f *writer) sightings(ctx context.Context, do func(*sighting) error, condition string, args ...any) error {
	type row struct {
		run     int64
		answers []byte
	}
	var rows []row // do may make queries
	err := f.Each(ctx, func(scan func(...any) error) error {
		var r row
		err := scan(&r.run, &r.answers)
		rows = append(rows, r)
		return err
	}, `SELECT run, answers FROM sightings `+condition, args...)
	for _, r := range rows {
		if err == nil {
			err = decodeSightings(r.run, r.answers, do)
		}
	}
	return err
}

// reached updates the totals after the last visible step of a run has changed.
func (f *writer) reached(ctx context.Context, run, was, reached int64) error {
	f.reaches[run] = reached
	all, err := f.between(ctx, run, min(was, reached), max(was, reached))
	if err != nil {
		return err
	}
	done := make(map[answerKey]bool)
	for i := range all {
		s := &all[i]
		if !s.keyed {
			factor := int64(1)
			if reached < was {
				factor = -1
			}
			f.total(&counted{s.run, s.seq, s.time, s.figures}, factor)
			continue
		}
		if done[s.key] {
			continue
		}
		done[s.key] = true
		now, err := f.seen(ctx, s.key)
		if err != nil {
			return err
		}
		before := make([]sighting, 0, len(now)+1)
		for _, o := range now { // without the new ones
			if o.run != run || o.seq <= was {
				before = append(before, o)
			}
		}
		for k := i; k < len(all) && reached < was; k++ { // with those that are gone
			if all[k].keyed && all[k].key == s.key {
				before = append(before, all[k])
			}
		}
		f.recount(before, now)
	}
	return nil
}

// between returns the sightings of a run after one step and up to another, in order.
func (f *writer) between(ctx context.Context, run, after, last int64) (all []sighting, err error) {
	if !f.IsNewRun(run) {
		err := f.sightings(ctx, func(s *sighting) error {
			if s.seq > after && s.seq <= last {
				all = append(all, *s)
			}
			return nil
		}, `WHERE run = ? AND last > ? AND first <= ? ORDER BY last, number`, run, after, last)
		return all, err
	}
	for _, s := range f.ofRun[run] {
		if s.seq > after && s.seq <= last {
			all = append(all, *s)
		}
	}
	return all, nil
}

// recount updates the totals for an answer whose visible sightings changed.
func (f *writer) recount(before, now []sighting) {
	if c, ok := choose(before); ok {
		f.total(&c, -1)
	}
	if c, ok := choose(now); ok {
		f.total(&c, 1)
	}
}

// reachOf returns the last visible step of a run.
func (f *writer) reachOf(ctx context.Context, run int64) (reached int64, err error) {
	reached, known := f.reaches[run]
	if !known && !f.IsNewRun(run) { // nothing of a new run is visible before Reach
		if _, err = f.Get(ctx, `SELECT reached FROM runs WHERE number = ?`, []any{run}, &reached); err == nil {
			f.reaches[run] = reached
		}
	}
	return reached, err
}
