package app

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

// StoreDir is the name of a store that is looked for.
const StoreDir = ".lineage"

// Session is an open store that a command works on.
type Session struct {
	*App
	Name  string // as people and programs read it: see ShownStore
	Dir   string // for files of the command line that belong to the store
	Store *lineage.Store
	// Thread is the current thread, nil while there is none.
	Thread *lineage.Thread
	Refs   *refs.Resolver
}

// OpenMode is what a command needs of the store.
type OpenMode uint8

const (
	// Reading opens the store without the right to change it.
	Reading OpenMode = 1 << iota
	// Create creates the store if there is none.
	Create
	// Begins is for commands that begin a thread: a database in a file that is not there is created.
	Begins
	// Damaged leaves out the warning about damage: the command is about that.
	Damaged
	// NoThread leaves the current thread alone: the command is about the store.
	NoThread

	Changing OpenMode = 0
)

// Has reports whether a mode has a flag.
func (m OpenMode) Has(flag OpenMode) bool { return m&flag != 0 }

// CreateIfNamed is the mode for imports: a store that the user named is created if it does not exist.
func (a *App) CreateIfNamed() OpenMode {
	if a.NamedStore() != "" {
		return Create | NoThread
	}
	return NoThread
}

// On returns what cobra calls for a command that works on a store.
func (a *App) On(mode OpenMode, run func(context.Context, *Session, []string) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error {
		return a.Open(ctx, mode, func(ctx context.Context, s *Session) error { return run(ctx, s, args) })
	})
}

// OnContext returns what cobra calls for a command that works on the context which its first argument names.
func (a *App) OnContext(mode OpenMode, run func(context.Context, *Session, *refs.Ref) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error { return a.OpenContext(ctx, mode, Arg(args, 0), run) })
}

// OpenContext runs a command on the context that a name stands for.
func (a *App) OpenContext(ctx context.Context, mode OpenMode, name string, run func(context.Context, *Session, *refs.Ref) error) error {
	return a.Open(ctx, mode, func(ctx context.Context, s *Session) error {
		found, err := s.Refs.Context(ctx, name)
		if err != nil {
			return err
		}
		return run(ctx, s, found)
	})
}

// Open runs a command on the store that is found.
func (a *App) Open(ctx context.Context, mode OpenMode, run func(context.Context, *Session) error) (err error) {
	named, err := a.FindStore(mode.Has(Create))
	if err != nil {
		return err
	}
	dir, err := localDir(named)
	if err != nil {
		return err
	}
	store, err := a.OpenStore(ctx, named, mode, structure.StoreID{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if damage := store.Damage(); damage != nil && !mode.Has(Damaged) {
		defer func() { err = incomplete(err, dir, damage) }()
	}
	s := &Session{App: a, Name: ShownStore(named), Dir: dir, Store: store}
	if !mode.Has(NoThread) {
		if s.Thread, err = s.currentThread(ctx); err != nil {
			return err
		}
	}
	s.Refs = refs.New(store, s.Thread)
	return run(ctx, s)
}

// incomplete returns the error of a command that ended with err on a damaged store: what was
// not found, or differs, may be in the damaged part.
func incomplete(err error, dir string, damage error) error {
	switch missing := fmt.Errorf("%s is shown in part: %w", dir, damage); {
	case err == nil, errors.Is(err, ErrNothingFound), errors.Is(err, ErrDiffers):
		err = missing
	case errors.Is(err, lineage.ErrNotFound):
		err = fmt.Errorf("%w; %w", err, missing)
	default:
		return err
	}
	return Hint(err, "'lineage verify' shows the damage and what repairs it")
}

// FindStore returns the name of the store: its directory, the one asked for or the nearest, or its URL.
func (a *App) FindStore(create bool) (string, error) {
	if named := a.NamedStore(); named != "" {
		return StoreNamed(named, create)
	}
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := at; ; at = filepath.Dir(at) {
		if below := filepath.Join(at, StoreDir); IsStore(below) {
			return below, nil
		}
		if IsStore(at) {
			return at, nil
		}
		if filepath.Dir(at) == at {
			return "", Hint(fmt.Errorf("store: %w in %s or a folder above it", lineage.ErrNotFound, start),
				"'lineage init' makes one here; --store and LINEAGE_STORE name one elsewhere")
		}
	}
}

// StoreNamed is FindStore for a store that is named.
func StoreNamed(dir string, create bool) (string, error) {
	if IsServed(dir) {
		return dir, nil
	}
	if IsDSN(dir) {
		return "", Hint(Usagef("%s: this command needs a store, not a database of chats", Redact(dir)),
			"'lineage thread', 'log', 'show', 'tree', 'append', 'branch', 'switch', 'checkpoint', 'restore-checkpoint', 'rewind', 'delete' and 'search' work on databases too")
	}
	if err := NotAFile(dir); err != nil {
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
	if below := filepath.Join(dir, StoreDir); IsStore(below) {
		return below, nil
	}
	return "", Hint(fmt.Errorf("store %s: %w", dir, lineage.ErrNotFound), "'lineage init %s' makes one", dir)
}

// ShownStore returns how people and programs read which store it is: its directory in full, or its URL without a password.
func ShownStore(named string) string {
	if IsServed(named) {
		return Redact(named)
	}
	if full, err := filepath.Abs(named); err == nil {
		return full
	}
	return named
}

// NotAFile refuses a store that cannot be one, because a file has its name.
func NotAFile(dir string) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Hint(Usagef("store %s: it is not a directory", dir), "a store is a directory that 'lineage init DIR' creates")
	}
	return nil
}

// IsStore reports whether a directory looks like a store.
func IsStore(dir string) bool {
	is, _ := embedded.IsStore(dir)
	return is
}

// OpenStore opens a store. It waits for another process for up to --wait. A store that is
// created gets the id, or a random one if that is zero.
func (a *App) OpenStore(ctx context.Context, dir string, mode OpenMode, id structure.StoreID) (*lineage.Store, error) {
	durability := lineage.Full
	switch a.Durability {
	case "full":
	case "normal":
		durability = lineage.Normal
	default:
		return nil, Usagef("durability %q: it is full or normal", a.Durability)
	}
	line := a.Progress("opening", screen.Bytes)
	defer line.Close() // the store reports progress again when this process takes over from another one
	o := lineage.Options{
		Durability: durability, ReadOnly: mode.Has(Reading), MustExist: !mode.Has(Create), ID: id,
		Wait: a.Wait, Waiting: func(held error) { a.Note("waiting: %v", held) }, Progress: line.Show,
		Logger: logline.New(slog.LevelWarn, func(line string) {
			if strings.HasPrefix(line, "index is rebuilt") {
				a.Rebuilt = append(a.Rebuilt, line)
			}
			a.Warn("%s", line)
		}),
	}
	open := lineage.Open
	if IsServed(dir) {
		open = openServed
		defer a.noteAfter(2*time.Second, "waiting for the database")()
	}
	store, err := open(ctx, dir, o)
	a.Keeps = a.Keeps || err == nil && !mode.Has(Reading)
	return store, err
}

// NeedThread returns the current thread.
func (s *Session) NeedThread() (*lineage.Thread, error) {
	if s.Thread == nil {
		return nil, &refs.NoThreadError{Where: "store"}
	}
	return s.Thread, nil
}

// Positions returns the two positions that names stand for.
func (s *Session) Positions(ctx context.Context, nameA, nameB string) (a, b *refs.Ref, err error) {
	if a, err = s.Refs.Find(ctx, nameA); err != nil {
		return nil, nil, err
	}
	b, err = s.Refs.Find(ctx, nameB)
	return a, b, err
}

// Home returns the thread that something was found in, or the current one.
func (s *Session) Home(found *refs.Ref) (*lineage.Thread, error) {
	if found.Thread != nil {
		return found.Thread, nil
	}
	return s.NeedThread()
}

// ContextOf returns the context of a position, or else the active branch of the thread that the position was found in.
func (s *Session) ContextOf(ctx context.Context, found *refs.Ref) (*refs.Ref, error) {
	if found.Context != nil {
		return found, nil
	}
	home, err := s.Home(found)
	if err != nil {
		return nil, err
	}
	return refs.New(s.Store, home).Context(ctx, "")
}

// Arg returns an argument, empty if it was not given.
func Arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
