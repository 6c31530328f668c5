package index

import "github.com/lineage-store/lineage/internal/vfs"

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
		q.later = append(q.later, delayedEntries{after: len(q.entries), maker: maker})
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

// Size returns the size of the file without what is only mapped, or of the memory without a file.
func (db *DB) Size() int64 {
	if db.opt.InMemory {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.settleLocked()
		return db.active.Bytes()
	}
	size, err := vfs.Size(db.path)
	if err != nil {
		return 0
	}
	return size - db.Mapped()
}

// Mapped returns how many bytes of the file are only there because they are mapped.
func (db *DB) Mapped() int64 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if !db.system.grow || db.base == nil || db.opt.InMemory {
		return 0
	}
	size, err := vfs.Size(db.path)
	if err != nil {
		return 0
	}
	return max(size-int64(db.base.pages.inUse()), 0)
}
