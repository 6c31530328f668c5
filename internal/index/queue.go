package index

import (
	"sync"
	"sync/atomic"
)

// queue holds the batches that were applied and are not in the overlay yet. A
// writer only leaves its batch here; a goroutine sorts what has gathered into the
// overlay. Whoever reads settles the queue first, so nobody sees the difference.
type queue struct {
	mu      sync.Mutex
	entries []Entry
	state   State // after the last batch
	batches uint64

	waiting atomic.Int64  // entries
	wake    chan struct{} // tells the goroutine that there is work, or by closing to end
	done    chan struct{} // closed when it has ended
}

const (
	wakeAt   = 256     // entries that are worth waking the goroutine for
	settleAt = 1 << 14 // entries at which the writer sees to it itself
)

// start begins to settle the queue in the background.
func (db *DB) startQueue() {
	q := &db.queue
	q.state = db.state
	q.wake, q.done = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(q.done)
		for range q.wake {
			db.settle()
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

// Apply makes a batch of entries visible, all at once, as of the state. It keeps
// the entries' keys and values, but not the batch.
func (db *DB) Apply(s State, batch []Entry) {
	q := &db.queue
	q.mu.Lock()
	q.entries = append(q.entries, batch...)
	q.state = s
	q.batches++
	n := len(q.entries)
	q.waiting.Store(int64(max(n, 1))) // a batch without entries has a state to keep
	q.mu.Unlock()
	switch {
	case n >= settleAt:
		db.settle()
	case n >= wakeAt:
		select {
		case q.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// settle brings what waits in the queue into the overlay.
func (db *DB) settle() {
	if db.queue.waiting.Load() > 0 {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.settleLocked()
	}
}

// settleLocked is settle for a caller that holds mu.
func (db *DB) settleLocked() {
	q := &db.queue
	q.mu.Lock()
	entries, state, batches := q.entries, q.state, q.batches
	q.entries, db.spare = db.spare, nil
	q.waiting.Store(0)
	q.mu.Unlock()
	if batches != db.applied {
		for i := range entries {
			db.active.set(entries[i])
		}
		db.state, db.applied = state, batches
		db.dropShared()
		db.pressure.Store(db.active.bytes)
		if db.active.bytes >= db.opt.OverlayBytes {
			db.startFold()
		}
	}
	clear(entries)
	db.spare = entries[:0]
}
