package index

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/lineage-store/lineage/internal/memtable"
)

// Settle moves the queue into the overlay.
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
	if cap(entries) > maxSpare {
		entries = nil // do not retain the memory of a huge batch
	}
	db.spare, db.spareLater = entries[:0], later[:0]
}

// maxSpare limits the memory of the queue that is reused.
const maxSpare = 4 << 20

// sorter yields entries in key order, which is cheapest for the overlay: each entry is
// near the one before.
type sorter struct {
	entries []Entry
	order   []rank
}

// rank represents an entry during sorting. The prefix distinguishes most keys.
type rank struct {
	prefix uint64
	entry  int
}

// each yields the entries of a queue by key; entries with the same key stay in order.
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
	if cap(s.entries) > 2*settleAt { // do not retain the memory of a huge batch
		s.entries, s.order = nil, nil
	}
}
