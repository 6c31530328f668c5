// Package search searches a store in a local directory. Its index is a SQLite file next to the
// journal. A search first brings the index up to date, and rebuilds it if it is missing or damaged,
// so the file can be deleted at any time.
//
// The index is by content: a text that is used several times is indexed once, with the steps that
// use it. Result texts are read from the store. With an Embedder, the index also has a vector for
// each text.
package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	sqlitedriver "modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/derived"
)

// FileName is the name of the index in a store's directory.
const FileName = "search.db"

// Options configure an index.
type Options struct {
	// Progress, when not nil, is called during updates with the number of indexed commits.
	Progress func(done, total uint64)
	// Embedder embeds texts for searches by vector. Word searches do not call it.
	Embedder Embedder
}

// Index finds messages, documents, assets and summaries. It is safe for concurrent use.
type Index struct {
	store   *lineage.Store
	path    string
	options Options

	mu   sync.RWMutex // held for writing while db is replaced
	db   *sql.DB
	file os.FileInfo // of db

	// Each has an element while a goroutine updates the index, or embeds texts.
	updating, embedding chan struct{}
}

var _ chat.Searcher = (*Index)(nil)

// Open opens the index of the store in a directory, without updating it. Close the index before the
// store.
func Open(ctx context.Context, store *lineage.Store, dir string, o Options) (*Index, error) {
	if (o.Embedder.Model == "") != (o.Embedder.Embed == nil) {
		return nil, fmt.Errorf("search index: %w: an embedder needs a model and a function", lineage.ErrInvalid)
	}
	x := &Index{store: store, path: filepath.Join(dir, FileName), options: o, updating: make(chan struct{}, 1), embedding: make(chan struct{}, 1)}
	return x, ended(ctx, x.open(ctx))
}

// ended returns why the context has ended instead of an error: then SQLite reports that a statement was
// interrupted, or database/sql that the transaction is over.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("search index: %w", context.Cause(ctx))
	}
	return err
}

// open opens the file, and replaces it by an empty one if it is damaged.
func (x *Index) open(ctx context.Context) error {
	var db *sql.DB
	open := func() (err error) {
		db, err = openFile(ctx, x.path)
		return err
	}
	err := patiently(ctx, open)
	if err != nil && ctx.Err() == nil && isUseless(err) {
		if err := Remove(filepath.Dir(x.path)); err != nil {
			return err
		}
		err = patiently(ctx, open)
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

// companions are the suffixes of the files of a SQLite database. The database is the last that is removed:
// then another process that creates a new one keeps its files.
var companions = []string{"-journal", "-wal", "-shm", ""}

func openFile(ctx context.Context, path string) (*sql.DB, error) {
	// SQLite opens the files by name after this check. A process that could replace one in between
	// can write to the store's directory, and so change everything in it.
	for _, suffix := range companions {
		if err := vfs.CheckWritten(path + suffix); err != nil {
			return nil, fmt.Errorf("search index: %w", err)
		}
	}
	f, err := openOrCreate(path)
	if err != nil {
		return nil, fmt.Errorf("search index: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := connect(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("search index: %w", err)
	}
	return db, nil
}

// openOrCreate opens a file. One that root creates is given to the user of the store, as SQLite does
// with its other files.
func openOrCreate(path string) (*os.File, error) {
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

// Remove removes the index in a directory, if any. A process that has it open rebuilds it before the
// next answer.
func Remove(dir string) error {
	for _, suffix := range companions {
		if err := os.Remove(filepath.Join(dir, FileName) + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove search index: %w", err)
		}
	}
	return nil
}

// Close closes the index. The file stays.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	db := x.db
	x.db = nil
	return db.Close()
}

// current reopens the file if it was removed or replaced, by a collection or another process. The
// open file may contain texts that have been erased since.
func (x *Index) current(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return fmt.Errorf("search index: %w", lineage.ErrClosed)
	}
	if is, err := os.Lstat(x.path); err == nil && os.SameFile(is, x.file) {
		return nil
	}
	db := x.db
	x.db = nil
	_ = db.Close() // its content is not needed
	return x.open(ctx)
}

// Update brings the index up to date.
func (x *Index) Update(ctx context.Context) error {
	if err := enter(ctx, x.updating); err != nil {
		return err
	}
	defer func() { <-x.updating }()
	if err := x.current(ctx); err != nil {
		return ended(ctx, err)
	}
	return x.repaired(ctx, func() error {
		return x.with(func(db *sql.DB) error { return x.follow(ctx, db) })
	})
}

// enter waits until nobody else is in.
func enter(ctx context.Context, in chan struct{}) error {
	select {
	case in <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx, ctx.Err())
	}
}

// busyTimeout is for how long SQLite waits for another process that writes. It does not look at the
// context meanwhile.
const busyTimeout = 50 * time.Millisecond

// patience is for how long we wait for other processes that write.
var patience = 10 * time.Second

// patiently calls do again while another process writes.
func patiently(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(patience)
	err := do()
	for isBusy(err) && ctx.Err() == nil && time.Now().Before(deadline) {
		err = do()
	}
	return err
}

func isBusy(err error) bool {
	e := (*sqlitedriver.Error)(nil)
	return !errors.As(err, new(embedderError)) && errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// repaired calls do, and once more with an empty index if the index does not fit the store.
func (x *Index) repaired(ctx context.Context, do func() error) error {
	err := patiently(ctx, do)
	if err != nil && ctx.Err() == nil && isUseless(err) {
		if err = x.renew(ctx); err == nil {
			err = patiently(ctx, do)
		}
	}
	return ended(ctx, err)
}

// errUseless is returned for an index of another store, history or format, and for one with
// impossible content.
var errUseless = errors.New("the search index does not fit the store")

// isUseless reports whether the index must be rebuilt because its content is wrong or damaged.
// Errors of the store, locks, a full disk and errors of an Embedder do not count.
func isUseless(err error) bool {
	if e := (embedderError{}); errors.As(err, &e) {
		return false
	}
	if e := (*sqlitedriver.Error)(nil); errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM,
			sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
			return false
		}
		return true
	}
	return errors.Is(err, errUseless) || errors.Is(err, lineage.ErrDiverged) || errors.Is(err, derived.ErrOtherStore)
}

// renew replaces the index by an empty one, unless another process already did.
func (x *Index) renew(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return fmt.Errorf("search index: %w", lineage.ErrClosed)
	}
	closeErr := x.db.Close()
	x.db = nil
	if is, err := os.Lstat(x.path); err == nil && os.SameFile(is, x.file) {
		if err := Remove(filepath.Dir(x.path)); err != nil {
			return errors.Join(err, closeErr)
		}
	}
	return x.open(ctx)
}

// with calls do with the database and prevents its replacement meanwhile.
func (x *Index) with(do func(*sql.DB) error) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return fmt.Errorf("search index: %w", lineage.ErrClosed)
	}
	return do(x.db)
}
