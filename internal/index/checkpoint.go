package index

import (
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Throttle waits while the overlay is so large that a checkpoint must catch up. It returns
// the checkpoint's error if that is the cause.
func (db *DB) Throttle() error {
	if db.pressure.Load() < 4*db.opt.OverlayBytes {
		return nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	if db.closed {
		return errClosed
	}
	for db.active.Bytes() >= 4*db.opt.OverlayBytes && db.folds() {
		db.startFold()
		switch {
		case db.folding:
		case db.closed:
			return errClosed
		default:
			return fmt.Errorf("index checkpoint: %w", db.foldErr)
		}
		db.idle.Wait()
	}
	return nil
}

// Checkpoint folds everything applied so far, and waits for it. In memory it does
// nothing.
func (db *DB) Checkpoint() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	applied := db.applied
	for tried := false; ; tried = true {
		for db.folding {
			db.idle.Wait()
		}
		switch {
		case db.folded >= applied, db.opt.InMemory:
			return nil
		case db.opt.ReadOnly:
			return fmt.Errorf("index: %w", backend.ErrReadOnly)
		case db.closed:
			return errClosed
		case db.foldErr != nil && (tried || errors.Is(db.foldErr, backend.ErrCorrupt)):
			return db.foldErr
		}
		db.retryAt = time.Time{}
		db.startFold()
	}
}

// Fold starts to fold everything applied so far, in the background.
func (db *DB) Fold() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	db.startFold()
}

// claim folds everything applied so far, and then reserves the file for writing by the
// caller, until endFold.
func (db *DB) claim() error {
	if err := db.Checkpoint(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for db.folding {
		db.idle.Wait()
	}
	if db.closed || db.bolt == nil {
		return errClosed
	}
	db.folding, db.written = true, true
	return nil
}
