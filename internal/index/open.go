package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"

	"github.com/lineage-store/lineage/internal/vfs"
)

// Open opens the index file, and creates it if there is none. ErrUnusable is returned for a
// file that must be rebuilt.
func Open(path string, o Options) (*DB, error) {
	if o.OverlayBytes <= 0 {
		o.OverlayBytes = 16 << 20
	}
	if o.Durable == nil {
		o.Durable = func(uint64) error { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Shape == nil {
		o.Shape = noShape{}
	}
	db := &DB{path: path, opt: o, limits: defaultLimits, system: mappedFilesHere, active: newOverlay(), syncDir: vfs.OS().SyncDir}
	db.limits.rewrite = uint64(o.OverlayBytes) / 16
	db.idle.L = &db.mu
	if o.InMemory {
		db.startQueue()
		return db, nil
	}
	if !o.ReadOnly { // left by a crash
		if err := os.Remove(path + compactSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open index: %w", err)
		}
		if err := removeAside(path); err != nil {
			return nil, fmt.Errorf("open index: %w", err)
		}
	}
	free, err := checkBefore(path)
	if err != nil {
		return nil, err
	}
	if free == nil && o.ReadOnly {
		db.startQueue()
		return db, nil
	}
	if free != nil {
		db.mapped = mapSize(free.inUse())
	} else {
		db.mapped = mapSize(0)
	}
	if err := guard(func() error { return db.openBolt(free) }); err != nil {
		switch {
		case db.bolt != nil:
			db.bolt.Close()
		case db.file != nil: // left open by a panic in bbolt
			db.file.Close()
		}
		if errors.Is(err, errPage) {
			return nil, fmt.Errorf("%w: %s: %w", ErrUnusable, path, err)
		}
		return nil, err
	}
	db.startQueue()
	return db, nil
}

// checkBefore checks a file before bbolt opens it. It returns nil for a missing or empty one.
func checkBefore(path string) (*pages, error) {
	f, err := vfs.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return nil, nil
	}
	free, err := checkFile(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnusable, path, err)
	}
	return free, nil
}

// Close folds the overlay and closes the file. It waits for snapshots, so they must be closed
// first. It may be called twice.
func (db *DB) Close() error {
	var err error
	if db.folds() {
		err = db.Checkpoint()
	}
	db.mu.Lock()
	closed := db.closed
	db.closed = true
	db.pressure.Store(math.MaxInt64) // Throttle checks the details
	db.mu.Unlock()
	if closed {
		return nil
	}
	db.stopQueue()
	db.mu.Lock()
	defer db.mu.Unlock()
	for db.folding {
		db.idle.Wait()
	}
	db.dropShared()
	if db.bolt == nil {
		if db.base != nil {
			db.base.release()
		}
		return err
	}
	release := db.leave()
	db.base.release()
	release()
	db.replaced.Wait()
	if !db.opt.ReadOnly {
		if err := db.trim(); err != nil {
			db.opt.Logger.Warn("index keeps unused space", "err", err)
		}
	}
	if db.written && err == nil {
		if err := db.writeSums(); err != nil {
			db.opt.Logger.Warn("index checksums are not written", "err", err)
		}
	}
	return err
}

// trim gives back the space behind the pages of a closed index that grew to what was mapped.
func (db *DB) trim() error {
	if !db.system.grow {
		return nil
	}
	if err := db.held(); err != nil {
		return err
	}
	return os.Truncate(db.path, int64(db.pages.inUse()))
}
