package index

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// queue has applied batches that are not in the overlay yet. A writer only appends its
// batch here; a goroutine sorts the queue into the overlay. Readers settle the queue
// first.
type queue struct {
	mu      sync.Mutex
	entries []byte // see appendEntry
	count   int    // number of entries, including those of later
	later   []pending
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

// startQueue starts to settle the queue in the background.
func (db *DB) startQueue() {
	q := &db.queue
	q.state = db.state
	q.number.Store(db.state.Number)
	q.wake, q.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(q.done)
		for range q.wake {
			db.Settle()
		}
	}()
}

// stopQueue ends the goroutine. Nothing may be applied afterwards.
func (db *DB) stopQueue() {
	if db.queue.wake != nil {
		close(db.queue.wake)
		<-db.queue.done
		db.queue.wake = nil
	}
}

// State returns the state of the index, including the overlay.
func (db *DB) State() State {
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	return db.queue.state
}

// Number returns the last commit in the index.
func (db *DB) Number() uint64 { return db.queue.number.Load() }

// Maker produces entries on demand. It is called once, from any goroutine.
type Maker interface {
	// Make calls put with each entry, which is copied. It may build them in the given
	// memory, and returns that memory or a larger replacement.
	Make(memory []byte, put func(Entry)) []byte
	// Count returns the approximate number of entries.
	Count() int
}

// pending are entries to produce after so many bytes of the queue.
type pending struct {
	after int
	maker Maker
}

// Apply publishes a batch of entries atomically, with the state. It does not retain the
// batch.
func (db *DB) Apply(s State, batch []Entry) {
	if db.ApplyWith(s, batch, nil) {
		db.Settle()
	}
}

// ApplyWith is Apply for a batch followed by the entries of maker, if not nil. It only
// appends them to the queue, and reports whether the queue is so long that the caller
// should settle it.
func (db *DB) ApplyWith(s State, batch []Entry, maker Maker) (many bool) {
	q := &db.queue
	q.mu.Lock()
	for i := range batch {
		q.entries = appendEntry(q.entries, &batch[i])
	}
	q.count += len(batch)
	if maker != nil {
		q.later = append(q.later, pending{after: len(q.entries), maker: maker})
		q.count += maker.Count()
	}
	q.state = s
	q.batches++
	n := q.count
	if !q.waiting.Load() { // setting it is a memory barrier
		q.waiting.Store(true)
	}
	q.number.Store(s.Number) // last: a reader that sees the number finds the entries
	q.mu.Unlock()
	if n >= settleAt {
		return true
	}
	if n >= wakeAt {
		select {
		case q.wake <- struct{}{}:
		default: // it is awake
		}
	}
	return false
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
