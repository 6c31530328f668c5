package usage

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// perStatement is the number of rows in a statement.
const perStatement = 16

// keep stores the window's sightings.
func (f *writer) keep(ctx context.Context) error {
	if len(f.pending) == 0 {
		return nil
	}
	f.fresh = make(map[answerKey]*sighting, len(f.pending))
	f.ofRun = make(map[int64][]*sighting)
	for i := range f.pending {
		s := &f.pending[i]
		f.ofRun[s.run] = append(f.ofRun[s.run], s)
		if s.keyed {
			s.same = f.fresh[s.key]
			f.fresh[s.key] = s
		}
	}
	keys, err := f.storeSightings(ctx)
	if err != nil {
		return err
	}
	earlier, err := f.addKeys(ctx, keys)
	if err != nil {
		return err
	}
	for key := range f.fresh {
		if earlier[key.hash()] {
			delete(f.fresh, key)
		}
	}
	for run, sightings := range f.ofRun {
		reached, err := f.reachOf(ctx, run)
		if err != nil {
			return err
		}
		for _, s := range sightings {
			if s.seq > reached {
				break // it is counted when its position becomes visible
			}
			f.added = append(f.added, s)
		}
	}
	return f.countAdded(ctx)
}

// storeSightings stores the rows of the window's sightings, and returns their keys.
func (f *writer) storeSightings(ctx context.Context) (keys []keyed, err error) {
	if _, err := f.Get(ctx, `SELECT IFNULL(MAX(number), 0) + 1 FROM sightings`, nil, &f.firstRow); err != nil {
		return nil, err
	}
	row := f.firstRow
	var args []any
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		statement := `INSERT INTO sightings VALUES (?, ?, ?, ?, ?)` + strings.Repeat(", (?, ?, ?, ?, ?)", len(args)/5-1)
		err := f.Exec(ctx, statement, args...)
		args = args[:0]
		return err
	}
	for _, run := range slices.Sorted(maps.Keys(f.ofRun)) {
		for batch := range slices.Chunk(f.ofRun[run], perRow) {
			args = append(args, row, run, batch[0].seq, batch[len(batch)-1].seq, appendSightings(make([]byte, 0, 48*len(batch)), batch))
			for _, s := range batch {
				if s.keyed {
					keys = append(keys, keyed{s.key.hash(), row})
				}
			}
			if row++; len(args) == 5*perStatement {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	return keys, flush()
}

// at is the position of a sighting.
type at struct{ run, seq, part int64 }

// countAdded counts the sightings that were added at visible positions.
func (f *writer) countAdded(ctx context.Context) error {
	added := make(map[at]bool, len(f.added))
	for _, s := range f.added {
		added[at{s.run, s.seq, s.part}] = true
	}
	done := make(map[answerKey]bool)
	for _, s := range f.added {
		switch {
		case !s.keyed:
			f.total(&counted{s.run, s.seq, s.time, s.figures}, 1)
			continue
		case done[s.key]:
			continue
		}
		done[s.key] = true
		now, err := f.seen(ctx, s.key)
		if err != nil {
			return err
		}
		before := make([]sighting, 0, len(now))
		for _, o := range now {
			if !added[at{o.run, o.seq, o.part}] {
				before = append(before, o)
			}
		}
		f.recount(before, now)
	}
	return nil
}
