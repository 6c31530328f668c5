package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

func (e *Engine) indexPath() string { return filepath.Join(e.dir, indexFile) }

// openFiles opens the index and the journal, and updates the index. With withoutIndex it starts
// with an empty index.
func (e *Engine) openFiles(ctx context.Context, withoutIndex bool) error {
	if err := e.openIndex(withoutIndex); err != nil {
		return err
	}
	if err := e.openJournal(); err != nil {
		return err
	}
	return e.replay(ctx)
}

func (e *Engine) openIndex(without bool) (err error) {
	path := e.indexPath()
	if without && e.opt.ReadOnly {
		path = filepath.Join(e.dir, "no index is written in read-only mode")
	}
	e.index, err = index.Open(path, index.Options{
		OverlayBytes: e.opt.OverlayBytes,
		ReadOnly:     e.opt.ReadOnly,
		InMemory:     e.opt.InMemory,
		Logger:       e.opt.Logger,
		Yield:        e.giveWay(),
		Early:        keys.Early,
		Shape:        keys.Shape{},
		Derive:       read.Derive,
		// A checkpoint is made after commits, when the journal is open.
		Durable: func(number uint64) error { return e.journal.Sync(number) },
	})
	return err
}

func (e *Engine) openJournal() (err error) {
	state := e.index.State()
	e.journal, err = journal.Open(filepath.Join(e.dir, journalDir), journal.Options{
		FS:           e.opt.FS,
		SegmentSize:  e.opt.SegmentSize,
		SyncInterval: e.opt.SyncInterval,
		Durable:      state.Number,
		DurableEnd:   journal.Position{Segment: state.Segment, Offset: state.Offset},
		ReadOnly:     e.opt.ReadOnly,
		MustExist:    e.opt.MustExist,
		Store:        e.opt.ID,
		Logger:       e.opt.Logger,
	})
	if err == nil {
		e.own = e.journal.ID()
	}
	return err
}

// errForeignIndex is returned when the index belongs to another journal.
var errForeignIndex = errors.New("the index belongs to another store")

// errAhead is returned to a reader when the index has commits that the journal has lost. What the
// index says of them cannot be read.
var errAhead = errors.New("the journal ends before the index")

// indexFault returns err if the index is the reason why the files could not be opened.
func (e *Engine) indexFault(err error) error {
	var damage *backend.CorruptError
	switch {
	case errors.Is(err, index.ErrUnusable), errors.Is(err, errForeignIndex), errors.Is(err, errPacks), errors.Is(err, errPending), errors.Is(err, errAhead),
		errors.Is(err, journal.ErrLookup):
		return err
	case errors.As(err, &damage) && damage.File == e.indexPath():
		return err
	case errors.Is(err, backend.ErrCorrupt) && e.index != nil && e.journal == nil && e.foreignIndex():
		return errForeignIndex
	}
	return nil
}

// foreignIndex reports whether the index belongs to another journal than the one that could not be opened.
func (e *Engine) foreignIndex() bool {
	state := e.index.State()
	j, err := journal.Open(filepath.Join(e.dir, journalDir), journal.Options{FS: e.opt.FS, ReadOnly: true})
	if err != nil {
		return false
	}
	defer j.Close()
	return state.Number > 0 && state.Store != j.StoreID()
}

// abandonIndex closes index and journal, and removes the index file.
func (e *Engine) abandonIndex() error {
	if e.journal != nil {
		if err := e.journal.Close(); err != nil {
			return err
		}
	}
	if e.index != nil {
		_ = e.index.Close() // the file is deleted anyway
	}
	e.index, e.journal, e.counts = nil, nil, keys.Counters{}
	e.forgetRecent() // the cache is of that index
	if e.opt.ReadOnly || e.opt.InMemory {
		return nil
	}
	if err := os.Remove(e.indexPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// fileSizes returns the total size of the index files, and of all other files outside the
// journal: a search index, temporary files, bytes that recovery and repair set aside.
func (e *Engine) fileSizes() (ofIndex, ofOthers int64, err error) {
	if e.opt.InMemory {
		ofIndex = e.index.Size()
	} else if ofIndex, ofOthers, err = e.sizesInDir(); err != nil {
		return 0, 0, err
	}
	names, err := e.opt.FS.List(filepath.Join(e.dir, journalDir))
	if err != nil {
		return 0, 0, err
	}
	segments := make(map[string]bool)
	for _, s := range e.journal.Segments() {
		segments[filepath.Base(s.Name)] = true
	}
	for _, name := range names {
		if segments[name] {
			continue
		}
		info, err := e.opt.FS.Stat(filepath.Join(e.dir, journalDir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		ofOthers += info.Size
	}
	return ofIndex, ofOthers, nil
}

// sizesInDir returns the total size of the index files, and of the other files in the store's
// directory outside the journal's directory.
func (e *Engine) sizesInDir() (ofIndex, ofOthers int64, err error) {
	err = filepath.WalkDir(e.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path == filepath.Join(e.dir, journalDir) {
			return fs.SkipDir
		}
		var info fs.FileInfo
		if err == nil && !entry.IsDir() {
			info, err = entry.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			return nil
		case err != nil || info == nil:
			return err
		case strings.HasPrefix(path, e.indexPath()):
			ofIndex += info.Size()
		default:
			ofOthers += info.Size()
		}
		return nil
	})
	return ofIndex, ofOthers, err
}
