package usage

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/varint"
)

// perRow is the number of sightings or counters in a row.
const perRow = 64

// appendSightings appends sightings in a run, in order.
func appendSightings(b []byte, all []*sighting) []byte {
	before := &sighting{}
	for _, s := range all {
		b = binary.AppendUvarint(b, uint64(s.seq-before.seq))
		if s.keyed {
			b = append(binary.AppendUvarint(b, uint64(s.part)<<1|1), s.key[:]...)
		} else {
			b = binary.AppendUvarint(b, uint64(s.part)<<1)
		}
		b = append(b, s.known)
		for _, n := range [...]int64{s.time - before.time, s.model, s.requests, s.covers, s.cost, s.costs} {
			b = binary.AppendVarint(b, n)
		}
		for k, n := range s.tokens {
			if s.known&(1<<k) != 0 {
				b = binary.AppendVarint(b, n)
			}
		}
		before = s
	}
	return b
}

// decodeSightings calls a function with each of the sightings of a run in a row, in order. They share its memory with the next.
func decodeSightings(run int64, b []byte, do func(*sighting) error) error {
	r := varint.Reader{Rest: b}
	s := sighting{run: run}
	for len(r.Rest) > 0 && !r.Bad {
		s.seq += int64(r.Next())
		part := r.Next()
		s.part, s.keyed, s.key = int64(part>>1), part&1 != 0, answerKey{}
		if s.keyed {
			copy(s.key[:], r.Take(uint64(len(s.key))))
		}
		s.figures = figures{sums: sums{answers: 1}}
		if known := r.Take(1); known != nil {
			s.known = known[0]
		}
		s.time += r.Signed()
		for _, into := range [...]*int64{&s.model, &s.requests, &s.covers, &s.cost, &s.costs} {
			*into = r.Signed()
		}
		for k := range s.tokens {
			if s.known&(1<<k) != 0 {
				s.tokens[k] = r.Signed()
			}
		}
		if r.Bad {
			break
		}
		if err := do(&s); err != nil {
			return err
		}
	}
	if r.Bad {
		return fmt.Errorf("sightings of run %d: %w", run, derivedfile.ErrUseless)
	}
	return nil
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
	had, err := f.addKeys(ctx, keys)
	if err != nil {
		return err
	}
	for key := range f.fresh {
		if had[key.hash()] {
			delete(f.fresh, key)
		}
	}
	for run, of := range f.ofRun {
		reached, err := f.reachOf(ctx, run)
		if err != nil {
			return err
		}
		for _, s := range of {
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
		for some := range slices.Chunk(f.ofRun[run], perRow) {
			args = append(args, row, run, some[0].seq, some[len(some)-1].seq, appendSightings(make([]byte, 0, 48*len(some)), some))
			for _, s := range some {
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
