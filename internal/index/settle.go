package index

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/lineage-store/lineage/internal/memtable"
)

// Settle brings what waits in the queue into the overlay.
func (db *DB) Settle() {
	if db.queue.waiting.Load() {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.settleLocked()
	}
}

// settleLocked is Settle for a caller that holds mu.
func (db *DB) settleLocked() {
	q := &db.queue
	q.mu.Lock()
	entries, later, state, batches := q.entries, q.later, q.state, q.batches
	q.entries, db.spare = db.spare, nil
	q.later, db.spareLater, q.count = db.spareLater, nil, 0
	q.waiting.Store(false)
	q.mu.Unlock()
	if batches != db.applied {
		set := func(e Entry) { db.active.Set(e.Key, e.Value) }
		done := 0
		for _, p := range later {
			db.sorter.each(entries[done:p.after], set)
			done = p.after
			db.scratch = p.maker.Make(db.scratch[:0], set)
		}
		db.sorter.each(entries[done:], set)
		db.state, db.applied = state, batches
		db.dropShared()
		db.pressure.Store(db.active.Bytes())
		if db.active.Bytes() >= db.opt.OverlayBytes {
			db.startFold()
		}
	}
	clear(later)
	if cap(entries) > mostSpare {
		entries = nil // do not hold on to the largest batch ever
	}
	db.spare, db.spareLater = entries[:0], later[:0]
}

// mostSpare is how much memory of the queue is kept to be used again.
const mostSpare = 4 << 20

// sorter yields entries in the order of their keys, which is the order in which they cost
// the overlay least: the place of one is near that of the one before.
type sorter struct {
	entries []Entry
	order   []rank
}

// rank stands for an entry while it is sorted. Most keys are told apart by their prefix.
type rank struct {
	prefix uint64
	entry  int
}

// each yields what a queue holds, entries of the same key in the order in which they came.
func (s *sorter) each(queued []byte, yield func(Entry)) {
	if len(queued) == 0 {
		return
	}
	eachEntry(queued, func(e Entry) {
		s.order = append(s.order, rank{memtable.Prefix(e.Key), len(s.entries)})
		s.entries = append(s.entries, e)
	})
	slices.SortFunc(s.order, func(a, b rank) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := bytes.Compare(s.entries[a.entry].Key, s.entries[b.entry].Key); c != 0 {
			return c
		}
		return a.entry - b.entry
	})
	for _, r := range s.order {
		yield(s.entries[r.entry])
	}
	clear(s.entries)
	s.entries, s.order = s.entries[:0], s.order[:0]
	if cap(s.entries) > 2*settleAt { // do not hold on to the largest batch ever
		s.entries, s.order = nil, nil
	}
}
