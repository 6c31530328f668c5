package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// storeDir is the name under which a store is looked for.
const storeDir = ".lineage"

// session is a command at work on an open store.
type session struct {
	*app
	name  string // of the store: its directory, or its URL without a password
	dir   string // for files of the command line that belong to the store
	store *lineage.Store
	// thread is the current thread, nil while there is none.
	thread *lineage.Thread
	refs   *refs.Resolver
}

// openMode says what a command needs of the store.
type openMode struct {
	readOnly bool
	// follows says that the command changes nothing but keeps the store open, so that others have
	// to be served.
	follows bool
	// create makes a store where none is, if it was named; id is the one that it gets, or zero.
	create bool
	id     structure.StoreID
	// damaged says that the command is about damage, and needs no word about it.
	damaged bool
	// noThread leaves the current thread alone: the command is about the store.
	noThread bool
}

// open runs a command on the store that is found.
func (a *app) open(ctx context.Context, mode openMode, run func(context.Context, *session) error) (err error) {
	named, err := a.findStore(mode.create)
	if err != nil {
		return err
	}
	dir, err := localDir(named)
	if err != nil {
		return err
	}
	store, err := a.openStore(ctx, named, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if damage := store.Damage(); damage != nil && !mode.damaged {
		defer func() { err = incomplete(err, dir, damage) }()
	}
	s := &session{app: a, name: dir, dir: dir, store: store}
	if isServed(named) {
		s.name = redact(named)
	}
	if !mode.noThread {
		if s.thread, err = s.currentThread(ctx); err != nil {
			return err
		}
	}
	s.refs = refs.New(store, s.thread)
	return run(ctx, s)
}

// incomplete returns the error of a command that ended with err on a damaged store. What was
// not found, or differs, may be what the damage hides.
func incomplete(err error, dir string, damage error) error {
	switch missing := fmt.Errorf("what this shows of %s is not all: %w", dir, damage); {
	case err == nil, errors.Is(err, errNothingFound), errors.Is(err, errDiffers):
		err = missing
	case errors.Is(err, lineage.ErrNotFound):
		err = fmt.Errorf("%w; %w", err, missing)
	default:
		return err
	}
	return hint(err, "'lineage verify' says what is damaged, and 'lineage repair' what can be done")
}

// read and change are open for commands that read, and for those that change.
func (a *app) read(ctx context.Context, run func(context.Context, *session) error) error {
	return a.open(ctx, openMode{readOnly: true}, run)
}

func (a *app) change(ctx context.Context, run func(context.Context, *session) error) error {
	return a.open(ctx, openMode{}, run)
}

// findStore returns the name of the store: its directory, the one asked for or the nearest, or its URL.
func (a *app) findStore(create bool) (string, error) {
	dir := a.store
	if dir == "" {
		dir = a.getenv("LINEAGE_STORE")
	}
	if dir != "" {
		return namedStore(dir, create)
	}
	at, err := workingDir()
	if err != nil {
		return "", err
	}
	for start := at; ; at = filepath.Dir(at) {
		if below := filepath.Join(at, storeDir); isStore(below) {
			return below, nil
		}
		if isStore(at) {
			return at, nil
		}
		if filepath.Dir(at) == at {
			return "", hint(fmt.Errorf("store: %w in %s or a folder above it", lineage.ErrNotFound, start),
				"'lineage init' makes one here; --store and LINEAGE_STORE name one elsewhere")
		}
	}
}

// namedStore is findStore for a store that is named.
func namedStore(dir string, create bool) (string, error) {
	if isServed(dir) {
		return dir, nil
	}
	if isDSN(dir) {
		return "", hint(usagef("%s: this command needs a store, not a database of chats", redact(dir)),
			"'lineage thread', 'log', 'show', 'tree', 'append', 'branch', 'switch', 'checkpoint', 'restore-checkpoint', 'rewind', 'delete' and 'search' work on databases too")
	}
	if err := notAFile(dir); err != nil {
		return "", err
	}
	is, err := embedded.IsStore(dir)
	if err != nil {
		return "", fmt.Errorf("store %s: %w", dir, err)
	}
	if is || create {
		return dir, nil
	}
	if _, err := os.ReadDir(filepath.Join(dir, "journal")); errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("store %s: %w", dir, err)
	}
	// A folder may be named that has its store below it.
	if below := filepath.Join(dir, storeDir); isStore(below) {
		return below, nil
	}
	return "", hint(fmt.Errorf("store %s: %w", dir, lineage.ErrNotFound), "'lineage init %s' makes one", dir)
}

// notAFile refuses a store that cannot be one, because a file has its name.
func notAFile(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return hint(usagef("store %s: it is not a directory", dir), "a store is a directory, made by 'lineage init DIR'")
	}
	return nil
}

// isStore reports whether a directory looks like a store.
func isStore(dir string) bool {
	is, _ := embedded.IsStore(dir)
	return is
}

// openStore opens a store, waiting for another process for as long as --wait says.
func (a *app) openStore(ctx context.Context, dir string, mode openMode) (*lineage.Store, error) {
	durability := lineage.Full
	switch a.durability {
	case "full":
	case "normal":
		durability = lineage.Normal
	default:
		return nil, usagef("durability %q: it is full or normal", a.durability)
	}
	line := a.progress("opening", screen.Bytes)
	defer line.Done()
	o := lineage.Options{
		Durability: durability, ReadOnly: mode.readOnly, MustExist: !mode.create, ID: mode.id,
		Wait: a.wait, Waiting: func(held error) { a.note("waiting: %v", held) }, Progress: line.Show,
		Logger: logline.New(slog.LevelWarn, func(line string) {
			a.repairs = append(a.repairs, line)
			a.warn("%s", line)
		}),
	}
	open := lineage.Open
	if isServed(dir) {
		open = openServed
	}
	store, err := open(ctx, dir, o)
	a.keeps = a.keeps || err == nil && !mode.readOnly && !mode.follows
	return store, err
}

// needThread returns the current thread.
func (s *session) needThread() (*lineage.Thread, error) {
	if s.thread == nil {
		return nil, hint(fmt.Errorf("thread: %w: the store has none yet", lineage.ErrNotFound),
			"'lineage thread create' makes one, and so does 'lineage append'")
	}
	return s.thread, nil
}

// context returns the context that a name stands for; an empty one is the active
// branch.
func (s *session) context(ctx context.Context, name string) (*refs.Ref, error) {
	if name == "" {
		if _, err := s.needThread(); err != nil {
			return nil, err
		}
	}
	return s.refs.Context(ctx, name)
}

// position returns the position that a name stands for.
func (s *session) position(ctx context.Context, name string) (*refs.Ref, error) {
	if name == "" {
		if _, err := s.needThread(); err != nil {
			return nil, err
		}
	}
	return s.refs.Find(ctx, name)
}

// home returns the thread that something was found in, or the current one.
func (s *session) home(found *refs.Ref) (*lineage.Thread, error) {
	if found.Thread != nil {
		return found.Thread, nil
	}
	return s.needThread()
}

func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
