package index

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// queue holds the batches that were applied and are not in the overlay yet. A
// writer only leaves its batch here; a goroutine sorts what has gathered into the
// overlay. Whoever reads settles the queue first, so nobody sees the difference.
type queue struct {
	mu      sync.Mutex
	entries []byte // see appendEntry
	count   int    // of entries, those that later ones will be included
	later   []pending
	state   State // after the last batch
	batches uint64

	waiting atomic.Bool   // there is a batch
	number  atomic.Uint64 // of the last commit
	wake    chan struct{} // tells the goroutine that there is work, or by closing to end
	done    chan struct{} // closed when it has ended
}

const (
	wakeAt   = 1024    // entries that are worth waking the goroutine for: it may take the writer's processor
	settleAt = 1 << 14 // entries at which the writer sees to it itself
)

// start begins to settle the queue in the background.
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

// stopQueue ends the goroutine. Nothing may be applied any more.
func (db *DB) stopQueue() {
	if db.queue.wake != nil {
		close(db.queue.wake)
		<-db.queue.done
		db.queue.wake = nil
	}
}

// State returns up to where the index holds the journal, overlay included.
func (db *DB) State() State {
	db.queue.mu.Lock()
	defer db.queue.mu.Unlock()
	return db.queue.state
}

// Number returns the number of the last commit that the index holds.
func (db *DB) Number() uint64 { return db.queue.number.Load() }

// Maker makes entries when they are wanted. It may be asked by any goroutine, and
// once for all.
type Maker interface {
	// Make calls put with each entry, which is copied. It may build them in the
	// memory that it is given, and returns that or what it had to replace it with.
	Make(memory []byte, put func(Entry)) []byte
	// Count returns about how many entries it makes.
	Count() int
}

// pending are entries to be made, behind so many bytes of the queue's.
type pending struct {
	after int
	maker Maker
}

// Apply makes a batch of entries visible, all at once, as of the state. It keeps
// nothing of the batch.
func (db *DB) Apply(s State, batch []Entry) {
	if db.ApplyMade(s, batch, nil) {
		db.Settle()
	}
}

// ApplyMade is Apply for a batch and, behind it, what maker makes if it is not nil. It
// only leaves them in the queue, and reports whether so many are there that the caller is
// to settle it.
func (db *DB) ApplyMade(s State, batch []Entry, maker Maker) (many bool) {
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
	if !q.waiting.Load() { // setting it is a barrier for the processor
		q.waiting.Store(true)
	}
	q.number.Store(s.Number) // after that: who sees the number finds what it brought
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

// appendEntry appends an entry as the queue keeps it: without pointers, which the
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

// eachEntry yields the entries that were appended one after the other.
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
