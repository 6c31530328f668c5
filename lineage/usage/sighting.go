package usage

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/derivedfile"
)

// columns are the columns of a sighting.
const columns = `s.run, s.seq, s.part, s.key, s.figures`

// scanned scans a sighting.
func scanned(scan func(...any) error) (s sighting, err error) {
	var key, b []byte
	if err := scan(&s.run, &s.seq, &s.part, &key, &b); err != nil {
		return s, err
	}
	switch {
	case key == nil:
	case len(key) != len(s.key):
		return s, fmt.Errorf("key %x: %w", key, derivedfile.ErrUseless)
	default:
		s.key, s.keyed = answerKey(key), true
	}
	if !s.decode(b) {
		return s, fmt.Errorf("figures %x: %w", b, derivedfile.ErrUseless)
	}
	return s, nil
}

// appendTo appends the time and the figures.
func (s *sighting) appendTo(b []byte) []byte {
	b = append(b, s.known)
	for _, n := range [...]int64{s.time, s.model, s.requests, s.covers, s.cost, s.costs} {
		b = binary.AppendVarint(b, n)
	}
	for k, n := range s.tokens {
		if s.known&(1<<k) != 0 {
			b = binary.AppendVarint(b, n)
		}
	}
	return b
}

func (s *sighting) decode(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	s.known, s.answers = b[0], 1
	b = b[1:]
	next := func(into *int64) bool {
		n, size := binary.Varint(b)
		if size <= 0 {
			return false
		}
		*into, b = n, b[size:]
		return true
	}
	for _, into := range [...]*int64{&s.time, &s.model, &s.requests, &s.covers, &s.cost, &s.costs} {
		if !next(into) {
			return false
		}
	}
	for k := range s.tokens {
		if s.known&(1<<k) != 0 && !next(&s.tokens[k]) {
			return false
		}
	}
	return len(b) == 0
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

// perStatement is the number of rows or keys in a statement.
const perStatement = 64

// keep stores the window's sightings.
func (f *writer) keep(ctx context.Context) error {
	if err := f.findFresh(ctx); err != nil {
		return err
	}
	args, figures := make([]any, 0, 5*perStatement), make([]byte, 0, 48*perStatement)
	for len(f.pending) > 0 {
		some := f.pending[:min(len(f.pending), perStatement)]
		f.pending = f.pending[len(some):]
		args, figures = args[:0], figures[:0]
		for i := range some {
			s, at := &some[i], len(figures)
			key := []byte(nil)
			if s.keyed {
				key = s.key[:]
			}
			figures = s.appendTo(figures)
			args = append(args, s.run, s.seq, s.part, key, figures[at:len(figures):len(figures)])
		}
		if err := f.Exec(ctx, `INSERT OR IGNORE INTO sightings VALUES (?, ?, ?, ?, ?)`+strings.Repeat(", (?, ?, ?, ?, ?)", len(some)-1), args...); err != nil {
			return err
		}
	}
	return f.countAdded(ctx)
}

// findFresh finds the keys that are in no earlier window, and the sightings that are visible already: in runs that
// are visible as a whole, or whose tip is from a state that an earlier window read.
func (f *writer) findFresh(ctx context.Context) error {
	f.fresh = make(map[answerKey]*sighting, len(f.pending))
	f.ofRun = make(map[int64][]*sighting)
	keys := make([]any, 0, len(f.pending))
	for i := range f.pending {
		s := &f.pending[i]
		f.ofRun[s.run] = append(f.ofRun[s.run], s)
		if !s.keyed {
			continue
		}
		if s.same = f.fresh[s.key]; s.same == nil {
			if !f.first && !f.known.lacks(&s.key) {
				keys = append(keys, s.key[:])
			}
		}
		f.known.add(&s.key)
		f.fresh[s.key] = s
	}
	for ; len(keys) > 0; keys = keys[min(len(keys), perStatement):] {
		some := keys[:min(len(keys), perStatement)]
		err := f.Each(ctx, func(scan func(...any) error) error {
			var key []byte
			if err := scan(&key); err != nil || len(key) != len(answerKey{}) {
				return err
			}
			delete(f.fresh, answerKey(key))
			return nil
		}, `SELECT DISTINCT key FROM sightings WHERE key IN (?`+strings.Repeat(", ?", len(some)-1)+`)`, some...)
		if err != nil {
			return err
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
			var there bool
			_, err := f.Get(ctx, `SELECT EXISTS (SELECT 1 FROM sightings WHERE run = ? AND seq = ? AND part = ?)`, []any{s.run, s.seq, s.part}, &there)
			if err != nil {
				return err
			}
			if !there {
				f.added = append(f.added, s)
			}
		}
	}
	return nil
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
