// Package derivedfile keeps derived data in a SQLite file next to the journal of a store. It opens and guards the
// file, replaces one that is damaged or belongs to another store or an older format, and keeps its mark. Several processes may
// use it.
//
// The file also records which spans of the store are visible: see Writer.
package derivedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
)

// File is an open file. It is safe for concurrent use.
type File struct {
	store  *lineage.Store
	path   string
	config Config

	mu     sync.RWMutex // held for writing while db is replaced
	db     *sql.DB      // nil after it could not be replaced
	file   os.FileInfo  // of db
	closed bool

	updating semaphore.Semaphore // taken while a goroutine updates the data
}

// Open opens the file in a directory, without updating it. Close it before the store.
func Open(ctx context.Context, store *lineage.Store, dir string, c Config) (*File, error) {
	x := &File{store: store, path: filepath.Join(dir, c.Name), config: c, updating: semaphore.New(1)}
	return x, x.Ended(ctx, x.open(ctx))
}

// Path returns the name of the file.
func (x *File) Path() string { return x.path }

// Ended returns the cause of the context if that has ended, else err: SQLite then reports an interrupted statement,
// and database/sql a finished transaction.
func (x *File) Ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", x.config.Label, context.Cause(ctx))
	}
	return err
}

// inPlace returns an error if the directory of the store is no longer at its path: another store may be there, with a file of its own.
func (x *File) inPlace() error {
	e, ok := write.Inner(write.Of(x.store).Engine()).(interface{ InPlace() error })
	if !ok { // the store has no directory
		return nil
	}
	if err := e.InPlace(); err != nil {
		return fmt.Errorf("%s: %w", x.config.Label, NewOutside(err))
	}
	return nil
}

// open opens the file, and replaces it by an empty one if it is damaged.
func (x *File) open(ctx context.Context) error {
	var db *sql.DB
	open := func() (err error) {
		db, err = x.openFile(ctx)
		return err
	}
	err := Patiently(ctx, open)
	if err != nil && ctx.Err() == nil && isUseless(err) {
		if err := remove(filepath.Dir(x.path), x.config.Name); err != nil {
			return err
		}
		err = Patiently(ctx, open)
	}
	if err == nil {
		if x.file, err = os.Lstat(x.path); err != nil {
			err = errors.Join(err, db.Close())
			db = nil
		}
	}
	x.db = db
	return err
}

// companions are the suffixes of the files of a SQLite database. The database itself is removed last, so that the
// files of a new one, created by another process, are not removed.
var companions = []string{"-journal", "-wal", "-shm", ""}

func (x *File) openFile(ctx context.Context) (*sql.DB, error) {
	if err := x.check(); err != nil {
		return nil, err
	}
	if err := create(x.path); err != nil {
		return nil, fmt.Errorf("%s: %w", x.config.Label, err)
	}
	db, err := connect(ctx, x.path, &x.config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.config.Label, err)
	}
	return db, nil
}

// check refuses files that SQLite must not open, and those of a directory in the place of the store. SQLite opens them by name afterwards. A process that could replace one in between can write to
// the store's directory, and could change everything in it anyway.
func (x *File) check() error {
	if err := x.inPlace(); err != nil {
		return err
	}
	for _, suffix := range companions {
		if err := vfs.CheckWritten(x.path + suffix); err != nil {
			return fmt.Errorf("%s: %w", x.config.Label, err)
		}
	}
	return nil
}

var creating sync.Mutex

// create creates a file that is missing. Only SQLite opens one that is there: closing it would release the locks that other handles
// in this process have on it.
func create(path string) error {
	creating.Lock() // no other handle opens the file before it is closed here
	defer creating.Unlock()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := OpenOrCreate(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// OpenOrCreate opens or creates a file. A file that root creates is given to the user who owns the store, as SQLite
// does with its other files.
func OpenOrCreate(path string) (*os.File, error) {
	for {
		f, err := vfs.OpenFile(path, os.O_RDWR)
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
		f, err = vfs.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR) // as private as the journal
		if err == nil {
			vfs.Give(f)
		}
		if !errors.Is(err, os.ErrExist) { // else another process was first
			return f, err
		}
	}
}

// remove removes the file with a name in a directory, if any. A process that has it open rebuilds it before the
// next answer.
func remove(dir, name string) error {
	for _, suffix := range companions {
		if err := os.Remove(filepath.Join(dir, name) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

// Close closes the file. The file stays.
func (x *File) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	return x.closeDB()
}

// closeDB closes the open database, if any.
func (x *File) closeDB() error {
	if x.db == nil {
		return nil
	}
	db := x.db
	x.db = nil
	return db.Close()
}

// current reopens the file if it was removed or replaced, by a collection or another process, or could not be opened
// before. The open file may contain texts that have been erased since.
func (x *File) current(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return x.errClosed()
	}
	if now, err := os.Lstat(x.path); x.db != nil && err == nil && os.SameFile(now, x.file) {
		return nil
	}
	_ = x.closeDB() // its content is not needed
	return x.open(ctx)
}

func (x *File) errClosed() error { return fmt.Errorf("%s: %w", x.config.Label, lineage.ErrClosed) }

// Update brings the data up to date. It also ends with derived.ErrUnfinished if another goroutine updates the data for longer
// than u.Until.
func (x *File) Update(ctx context.Context, u Updating) error {
	waiting := ctx
	if !u.Until.IsZero() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadlineCause(ctx, u.Until, derived.ErrUnfinished)
		defer cancel()
	}
	if err := x.Acquire(waiting, x.updating); err != nil {
		return err
	}
	defer x.updating.Release()
	if err := x.current(ctx); err != nil {
		return x.Ended(ctx, err)
	}
	return x.Repaired(ctx, func() error {
		return x.With(func(db *sql.DB) error { return follow(ctx, x.store, db, u) })
	})
}

// Acquire takes a slot, also for a context that has ended if one is free: an update that has no time left still tries.
func (x *File) Acquire(ctx context.Context, s semaphore.Semaphore) error {
	if s.TryAcquire() {
		return nil
	}
	return x.Ended(ctx, s.Acquire(ctx))
}

// Repaired calls do, and calls it again with an empty file if the data does not fit the store.
func (x *File) Repaired(ctx context.Context, do func() error) error {
	err := Patiently(ctx, do)
	if err != nil && ctx.Err() == nil && isUseless(err) {
		if err = x.renew(ctx); err == nil {
			err = Patiently(ctx, do)
		}
	}
	return x.Ended(ctx, err)
}

// renew replaces the file by an empty one, unless another process already did.
func (x *File) renew(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return x.errClosed()
	}
	closeErr := x.closeDB()
	if err := x.inPlace(); err != nil {
		return errors.Join(err, closeErr)
	}
	if now, err := os.Lstat(x.path); err == nil && os.SameFile(now, x.file) {
		if err := remove(filepath.Dir(x.path), x.config.Name); err != nil {
			return errors.Join(err, closeErr)
		}
	}
	return x.open(ctx)
}

// errNotOpen is returned while the file is not open because replacing it failed. The next update opens it.
var errNotOpen = errors.New("the file is not open")

// With calls do with the database and prevents its replacement meanwhile.
func (x *File) With(do func(*sql.DB) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch {
	case x.closed:
		return x.errClosed()
	case x.db == nil:
		return fmt.Errorf("%s: %w", x.config.Label, errNotOpen)
	}
	return do(x.db)
}

// Checkpoint removes what the log of SQLite has of deleted rows, when nobody reads an earlier state.
func Checkpoint(ctx context.Context, db *sql.DB) error {
	return Patiently(ctx, func() error {
		var busy, pages, copied int
		if err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &copied); err != nil {
			return err
		}
		if busy != 0 {
			return errReaders
		}
		return nil
	})
}

// Remove removes the file of a store in a directory, if any. Handles that have it open build it again before they answer.
func Remove(store *lineage.Store, dir string, c Config) error {
	if err := (&File{store: store, config: c}).inPlace(); err != nil {
		return err
	}
	return remove(dir, c.Name)
}
