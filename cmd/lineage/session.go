package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// storeDir is the name of a store that is looked for.
const storeDir = ".lineage"

// session is an open store that a command works on.
type session struct {
	*app
	name  string // as people and programs read it: see shownStore
	dir   string // for files of the command line that belong to the store
	store *lineage.Store
	// thread is the current thread, nil while there is none.
	thread *lineage.Thread
	refs   *refs.Resolver
}

// openMode is what a command needs of the store.
type openMode uint8

const (
	// reading opens the store without the right to change it.
	reading openMode = 1 << iota
	// create creates the store if there is none.
	create
	// begins is for commands that begin a thread: a database in a file that is not there is created.
	begins
	// damaged leaves out the warning about damage: the command is about that.
	damaged
	// noThread leaves the current thread alone: the command is about the store.
	noThread

	changing openMode = 0
)

func (m openMode) has(flag openMode) bool { return m&flag != 0 }

// createIfNamed is the mode for imports: a store that the user named is created if it does not exist.
func (a *app) createIfNamed() openMode {
	if a.namedStore() != "" {
		return create | noThread
	}
	return noThread
}

// on returns what cobra calls for a command that works on a store.
func (a *app) on(mode openMode, run func(context.Context, *session, []string) error) func(*cobra.Command, []string) error {
	return a.does(func(ctx context.Context, args []string) error {
		return a.open(ctx, mode, func(ctx context.Context, s *session) error { return run(ctx, s, args) })
	})
}

// onContext returns what cobra calls for a command that works on the context which its first argument names.
func (a *app) onContext(mode openMode, run func(context.Context, *session, *refs.Ref) error) func(*cobra.Command, []string) error {
	return a.does(func(ctx context.Context, args []string) error { return a.openContext(ctx, mode, arg(args, 0), run) })
}

// openContext runs a command on the context that a name stands for.
func (a *app) openContext(ctx context.Context, mode openMode, name string, run func(context.Context, *session, *refs.Ref) error) error {
	return a.open(ctx, mode, func(ctx context.Context, s *session) error {
		found, err := s.refs.Context(ctx, name)
		if err != nil {
			return err
		}
		return run(ctx, s, found)
	})
}

// open runs a command on the store that is found.
func (a *app) open(ctx context.Context, mode openMode, run func(context.Context, *session) error) (err error) {
	named, err := a.findStore(mode.has(create))
	if err != nil {
		return err
	}
	dir, err := localDir(named)
	if err != nil {
		return err
	}
	store, err := a.openStore(ctx, named, mode, structure.StoreID{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if damage := store.Damage(); damage != nil && !mode.has(damaged) {
		defer func() { err = incomplete(err, dir, damage) }()
	}
	s := &session{app: a, name: shownStore(named), dir: dir, store: store}
	if !mode.has(noThread) {
		if s.thread, err = s.currentThread(ctx); err != nil {
			return err
		}
	}
	s.refs = refs.New(store, s.thread)
	return run(ctx, s)
}

// incomplete returns the error of a command that ended with err on a damaged store: what was
// not found, or differs, may be in the damaged part.
func incomplete(err error, dir string, damage error) error {
	switch missing := fmt.Errorf("%s is shown in part: %w", dir, damage); {
	case err == nil, errors.Is(err, errNothingFound), errors.Is(err, errDiffers):
		err = missing
	case errors.Is(err, lineage.ErrNotFound):
		err = fmt.Errorf("%w; %w", err, missing)
	default:
		return err
	}
	return hint(err, "'lineage verify' shows the damage and what repairs it")
}

// findStore returns the name of the store: its directory, the one asked for or the nearest, or its URL.
func (a *app) findStore(create bool) (string, error) {
	if named := a.namedStore(); named != "" {
		return storeNamed(named, create)
	}
	at, err := os.Getwd()
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

// storeNamed is findStore for a store that is named.
func storeNamed(dir string, create bool) (string, error) {
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

// shownStore returns how people and programs read which store it is: its directory in full, or its URL without a password.
func shownStore(named string) string {
	if isServed(named) {
		return redact(named)
	}
	if full, err := filepath.Abs(named); err == nil {
		return full
	}
	return named
}

// notAFile refuses a store that cannot be one, because a file has its name.
func notAFile(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return hint(usagef("store %s: it is not a directory", dir), "a store is a directory that 'lineage init DIR' creates")
	}
	return nil
}

// isStore reports whether a directory looks like a store.
func isStore(dir string) bool {
	is, _ := embedded.IsStore(dir)
	return is
}

// openStore opens a store. It waits for another process for up to --wait. A store that is
// created gets the id, or a random one if that is zero.
func (a *app) openStore(ctx context.Context, dir string, mode openMode, id structure.StoreID) (*lineage.Store, error) {
	durability := lineage.Full
	switch a.durability {
	case "full":
	case "normal":
		durability = lineage.Normal
	default:
		return nil, usagef("durability %q: it is full or normal", a.durability)
	}
	line := a.progress("opening", screen.Bytes)
	defer line.Close() // the store reports progress again when this process takes over from another one
	o := lineage.Options{
		Durability: durability, ReadOnly: mode.has(reading), MustExist: !mode.has(create), ID: id,
		Wait: a.wait, Waiting: func(held error) { a.note("waiting: %v", held) }, Progress: line.Show,
		Logger: logline.New(slog.LevelWarn, func(line string) {
			if strings.HasPrefix(line, "index is rebuilt") {
				a.rebuilt = append(a.rebuilt, line)
			}
			a.warn("%s", line)
		}),
	}
	open := lineage.Open
	if isServed(dir) {
		open = openServed
		defer a.noteAfter(2*time.Second, "waiting for the database")()
	}
	store, err := open(ctx, dir, o)
	a.keeps = a.keeps || err == nil && !mode.has(reading)
	return store, err
}

// needThread returns the current thread.
func (s *session) needThread() (*lineage.Thread, error) {
	if s.thread == nil {
		return nil, &refs.NoThreadError{Where: "store"}
	}
	return s.thread, nil
}

// positions returns the two positions that names stand for.
func (s *session) positions(ctx context.Context, nameA, nameB string) (a, b *refs.Ref, err error) {
	if a, err = s.refs.Find(ctx, nameA); err != nil {
		return nil, nil, err
	}
	b, err = s.refs.Find(ctx, nameB)
	return a, b, err
}

// home returns the thread that something was found in, or the current one.
func (s *session) home(found *refs.Ref) (*lineage.Thread, error) {
	if found.Thread != nil {
		return found.Thread, nil
	}
	return s.needThread()
}

// contextOf returns the context of a position, or else the active branch of the thread that the position was found in.
func (s *session) contextOf(ctx context.Context, found *refs.Ref) (*refs.Ref, error) {
	if found.Context != nil {
		return found, nil
	}
	home, err := s.home(found)
	if err != nil {
		return nil, err
	}
	return refs.New(s.store, home).Context(ctx, "")
}

func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
