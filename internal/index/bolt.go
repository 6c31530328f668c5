package index

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// openFile opens the file for bbolt.
func (db *DB) openFile(name string, flag int, _ os.FileMode) (*os.File, error) {
	f, err := vfs.OpenFile(name, flag)
	db.file = f
	if err == nil && !db.opt.ReadOnly {
		err = vfs.SetSparse(f)
	}
	return f, err
}

// mapBolt opens the file in bbolt, with as much address space as the system gives.
func (db *DB) mapBolt() (err error) {
	for {
		db.bolt, err = bbolt.Open(db.path, 0o600, &bbolt.Options{
			Timeout:         time.Second, // the store's lock is held, so nobody else has it
			PageSize:        db.pageSize,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: db.mapped,
			MaxSize:         db.mapped, // fail instead of waiting for all reads to end
			NoStatistics:    true,
			NoSync:          db.draft,
			NoGrowSync:      db.draft,
			ReadOnly:        db.opt.ReadOnly,
			OpenFile:        db.openFile,
		})
		// A replacement needs room to grow.
		if !errors.Is(err, syscall.ENOMEM) || db.mapped <= minMapSize || db.draft {
			break
		}
		db.mapped /= 2
	}
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("open index %s: %w", db.path, backend.ErrLocked)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	case err != nil:
		return fmt.Errorf("open index: %w", err)
	}
	db.bolt.AllocSize = allocSize
	return nil
}

// openBolt opens the checked file, or creates it.
func (db *DB) openBolt(free *pages) (err error) {
	if err := db.mapBolt(); err != nil {
		return err
	}
	fresh := false
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		first, _ := tx.Cursor().First()
		fresh = first == nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	if fresh && !db.opt.ReadOnly {
		db.written = true
		if err := db.removeSums(); err != nil {
			return fmt.Errorf("open index: %w", err)
		}
		if err := db.bolt.Update(prepare); err != nil {
			return fmt.Errorf("open index: %w", err)
		}
		if free, err = checkFile(db.file); err != nil {
			return fmt.Errorf("open index: %w", err)
		}
	}
	var table *sealing
	if err := db.bolt.View(func(tx *bbolt.Tx) (err error) {
		table, err = db.state.load(tx)
		return err
	}); err != nil {
		return err
	}
	db.pages = free.mapped(db.bolt, db.mapped)
	db.kept = newFile(db.path, db.bolt)
	if db.base, err = openBase(db.kept, db.pages); err != nil {
		return err
	}
	if err := db.base.openTable(db.opt.Shape, table); err != nil {
		db.base.release()
		db.base = nil
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return nil
}

// prepare creates the buckets and the first, empty leaf.
func prepare(tx *bbolt.Tx) error {
	if _, err := tx.CreateBucket(metaBucket); err != nil {
		return err
	}
	if _, err := tx.CreateBucket(sealedBucket); err != nil {
		return err
	}
	leaves, err := tx.CreateBucket(leavesBucket)
	if err != nil {
		return err
	}
	var w leafWriter
	if err := leaves.Put(leafKey(nil), w.finish(nil, nil)); err != nil {
		return err
	}
	return State{}.save(tx, nil)
}
