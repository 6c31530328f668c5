package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/memtable"
)

// queue has applied batches that are not in the overlay yet. A writer only appends its
// batch here; a goroutine sorts the queue into the overlay. Readers settle the queue
// first.
type queue struct {
	mu      sync.Mutex
	entries []byte // see appendEntry
	count   int    // number of entries, including those of later
	later   []delayedEntries
	state   State // after the last batch
	batches uint64

	waiting atomic.Bool   // there is a batch
	number  atomic.Uint64 // of the last commit
	wake    chan struct{} // wakes the goroutine; closing ends it
	done    chan struct{} // closed when it has ended
}

const (
	wakeAt   = 1024    // entries for which to wake the goroutine, which may take the writer's processor
	settleAt = 1 << 14 // entries at which the writer settles the queue itself
)

// Maker produces entries on demand. It is called once, from any goroutine.
type Maker interface {
	// Make calls put with each entry. put copies the entry, so Make may build all of them in the given
	// memory. It returns that memory, or the larger one that it used instead.
	Make(memory []byte, put func(Entry)) []byte
	// Count returns the approximate number of entries.
	Count() int
}

// delayedEntries are entries to produce after so many bytes of the queue.
type delayedEntries struct {
	after int
	maker Maker
}

// appendEntry appends an entry in the encoding of the queue: without pointers, which the
// garbage collector would follow.
func appendEntry(dst []byte, e *Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(e.Key)))
	if e.Value == nil {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendUvarint(dst, uint64(len(e.Value))+1)
	}
	return append(append(dst, e.Key...), e.Value...)
}

// eachEntry yields the entries of a queue in order.
func eachEntry(b []byte, yield func(Entry)) {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		b = b[n:]
		value, n := binary.Uvarint(b)
		b = b[n:]
		e := Entry{Key: b[:key:key]}
		b = b[key:]
		if value > 0 {
			e.Value = b[: value-1 : value-1]
			b = b[value-1:]
		}
		yield(e)
	}
}

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
