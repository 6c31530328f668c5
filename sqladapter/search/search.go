// Package search finds messages in a store on a local directory. It keeps a
// projection of the store's chats in a SQLite file beside the journal, brings it up
// to date when it is asked something, and makes it anew whenever it is not there or
// not as it should be: it can be deleted at any time.
package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// FileName is the name of the index in a store's directory.
const FileName = "search.db"

// Options qualify an index. The zero value is good for most.
type Options struct {
	// Progress, when not nil, is told how bringing the index up to date goes.
	Progress func(sqladapter.ProjectReport)
}

// Index finds messages. It is safe for concurrent use.
type Index struct {
	store   *lineage.Store
	path    string
	options Options

	mu   sync.RWMutex // held for writing while db is replaced
	db   *sqladapter.DB
	file os.FileInfo // of db

	updating sync.Mutex
}

var _ chat.Searcher = (*Index)(nil)

// Open opens the index of a store in its directory. Nothing is brought up to date
// yet. Close the index before the store.
func Open(ctx context.Context, store *lineage.Store, dir string, o Options) (*Index, error) {
	x := &Index{store: store, path: filepath.Join(dir, FileName), options: o}
	return x, x.open(ctx)
}

// open opens the file. One that is damaged is made anew: everything in it comes
// from the store.
func (x *Index) open(ctx context.Context) error {
	db, err := openFile(ctx, x.path)
	if err != nil && ctx.Err() == nil && !errors.Is(err, vfs.ErrNotRegular) {
		if err := x.remove(); err != nil {
			return err
		}
		db, err = openFile(ctx, x.path)
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

// companions end the names of the files that SQLite keeps an index in.
var companions = []string{"", "-wal", "-shm", "-journal"}

func openFile(ctx context.Context, path string) (*sqladapter.DB, error) {
	// SQLite opens the files by their names, after this. Who replaces one in between can
	// write to the store's directory, and with that to everything in it.
	for _, suffix := range companions {
		if _, err := vfs.Size(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("search index: %w", err)
		}
	}
	f, err := vfs.OpenFile(path, os.O_CREATE|os.O_RDWR) // as private as the journal
	if err != nil {
		return nil, fmt.Errorf("search index: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path, sqladapter.Options{})
}

func (x *Index) remove() error {
	for _, suffix := range companions {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
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

// current opens the file again where another has its name, or none: a collection removes it, and
// other processes make it anew. What is open then may have what was erased since.
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
	_ = db.Close() // nothing of it is needed
	return x.open(ctx)
}

// Update brings the index up to date.
func (x *Index) Update(ctx context.Context) error {
	x.updating.Lock()
	defer x.updating.Unlock()
	if err := x.current(ctx); err != nil {
		return err
	}
	err := x.project(ctx)
	if err == nil || ctx.Err() != nil || !isUseless(err) {
		return err
	}
	if err := x.renew(ctx); err != nil {
		return err
	}
	return x.project(ctx)
}

// isUseless reports whether the index has to be made anew: it has something else, or
// is damaged. Whatever goes wrong in the store is not its fault.
func isUseless(err error) bool {
	return !errors.Is(err, lineage.ErrClosed) && !errors.Is(err, lineage.ErrExpired) && !errors.Is(err, lineage.ErrCorrupt) && !errors.Is(err, lineage.ErrReadOnly) &&
		!errors.Is(err, sqladapter.ErrBusy)
}

// renew replaces the index by an empty one.
func (x *Index) renew(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return fmt.Errorf("search index: %w", lineage.ErrClosed)
	}
	closeErr := x.db.Close()
	x.db = nil
	if err := x.remove(); err != nil {
		return errors.Join(err, closeErr)
	}
	return x.open(ctx)
}

func (x *Index) project(ctx context.Context) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return fmt.Errorf("search index: %w", lineage.ErrClosed)
	}
	p := &sqladapter.Projector{Store: x.store, DB: x.db, ChatsOnly: true, Progress: x.options.Progress}
	_, err := p.Run(ctx)
	return err
}

// Chats returns the chats of the store, which can be searched.
func (x *Index) Chats() chat.Store { return chat.OnSearchable(x.store, x) }

// SearchMessages implements chat.Searcher, over what is in the store when it is
// called.
func (x *Index) SearchMessages(ctx context.Context, chatID, query string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	return x.search(ctx, func(db *sqladapter.DB) ([]chat.SearchResult, error) {
		return db.Chats().SearchMessages(ctx, chatID, query, o)
	})
}

// SearchAll returns the messages that match in any chat, or in any of one user's if
// userID is not empty. Ranks are those within the chats.
func (x *Index) SearchAll(ctx context.Context, userID, query string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	return x.search(ctx, func(db *sqladapter.DB) ([]chat.SearchResult, error) {
		return db.SearchAll(ctx, userID, query, o)
	})
}

// search brings the index up to date and asks it. One that turns out to be damaged
// is made anew.
func (x *Index) search(ctx context.Context, ask func(*sqladapter.DB) ([]chat.SearchResult, error)) ([]chat.SearchResult, error) {
	if err := x.Update(ctx); err != nil {
		return nil, err
	}
	found, err := x.ask(ask)
	if err == nil || ctx.Err() != nil || errors.Is(err, chat.ErrInvalid) || !isUseless(err) {
		return found, err
	}
	if err := x.renew(ctx); err != nil { // damage that an update does not meet
		return nil, err
	}
	if err := x.Update(ctx); err != nil {
		return nil, err
	}
	return x.ask(ask)
}

func (x *Index) ask(ask func(*sqladapter.DB) ([]chat.SearchResult, error)) ([]chat.SearchResult, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return nil, fmt.Errorf("search index: %w", lineage.ErrClosed)
	}
	return ask(x.db)
}
