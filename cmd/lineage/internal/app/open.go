package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/structure"
)

// CreateIfNamed returns the mode for imports: a named store is created if it does not exist.
func (a *App) CreateIfNamed() OpenMode {
	if a.NamedStore() != "" {
		return Create | NoThread
	}
	return NoThread
}

// On returns the function that cobra calls for a command on a store.
func (a *App) On(mode OpenMode, run func(context.Context, *OpenStore, []string) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error {
		return a.Open(ctx, mode, func(ctx context.Context, s *OpenStore) error { return run(ctx, s, args) })
	})
}

// OnContext returns the function that cobra calls for a command on a context, which its first argument names.
func (a *App) OnContext(mode OpenMode, run func(context.Context, *OpenStore, *refs.Ref) error) func(*cobra.Command, []string) error {
	return a.Does(func(ctx context.Context, args []string) error { return a.OpenContext(ctx, mode, Arg(args, 0), run) })
}

// OpenContext runs a command on a context by name.
func (a *App) OpenContext(ctx context.Context, mode OpenMode, name string, run func(context.Context, *OpenStore, *refs.Ref) error) error {
	return a.Open(ctx, mode, func(ctx context.Context, s *OpenStore) error {
		found, err := s.Refs.Context(ctx, name)
		if err != nil {
			return err
		}
		return run(ctx, s, found)
	})
}

// Open runs a command on the store.
func (a *App) Open(ctx context.Context, mode OpenMode, run func(context.Context, *OpenStore) error) (err error) {
	named, err := a.FindStore(mode.Has(Create))
	if err != nil {
		return err
	}
	dir, err := localDir(named)
	if err != nil {
		return err
	}
	id := structure.StoreID(uuid.New()) // only a store that this process creates has it
	store, err := a.OpenStore(ctx, named, mode, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if a.NamedStore() == "" && store.ID() == id {
		if err := a.Print(&records.Init{Store: named}, "created a store in %s, which commands find in every folder that has none of its own\n", named); err != nil {
			return err
		}
	}
	if damage := store.Damage(); damage != nil && !mode.Has(Damaged) {
		defer func() { err = incomplete(err, dir, damage) }()
	}
	s := &OpenStore{App: a, Name: ShownStore(named), Dir: dir, Store: store}
	if !mode.Has(NoThread) {
		if s.Thread, err = s.currentThread(ctx); err != nil {
			return err
		}
	}
	s.Refs = refs.New(store, s.Thread)
	return run(ctx, s)
}

// incomplete returns the error of a command that ended with err on a damaged store. What was not found, or differs,
// may be in the damaged part.
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

// prune removes from the indexes in a directory what a collection removed from the store.
func prune(ctx context.Context, dir string, engine backend.Engine) error {
	return errors.Join(usage.Prune(ctx, dir, engine), search.Prune(ctx, dir, engine))
}

// OpenStore opens a store. It waits up to --wait for another process. If the store is created, it gets the id, or a
// random one if that is zero.
func (a *App) OpenStore(ctx context.Context, dir string, mode OpenMode, id structure.StoreID) (*lineage.Store, error) {
	durability := lineage.Full
	switch a.Durability {
	case "full":
	case "normal":
		durability = lineage.Normal
	default:
		return nil, Usagef("durability %q: must be full or normal", a.Durability)
	}
	line := a.Progress("opening", amount.Bytes)
	defer line.Close() // the store reports progress again if this process becomes its owner
	o := lineage.Options{
		Durability: durability, ReadOnly: mode.Has(Reading), MustExist: !mode.Has(Create), ID: id,
		Prune: prune, Wait: a.Wait, Waiting: func(held error) { a.Note("waiting: %v", held) }, Progress: line.Show,
		Logger: logline.New(slog.LevelWarn, func(line string) {
			if strings.HasPrefix(line, "index is rebuilt") {
				a.Rebuilt = append(a.Rebuilt, line)
			}
			a.Warn("%s", line)
		}),
	}
	open := lineage.Open
	if IsServed(dir) {
		open = func(ctx context.Context, named string, o lineage.Options) (*lineage.Store, error) {
			return openServed(ctx, named, o, mode.Has(Distribute))
		}
		defer a.noteAfter(2*time.Second, "waiting for the database")()
	}
	store, err := open(ctx, dir, o)
	a.Keeps = a.Keeps || err == nil && !mode.Has(Reading)
	return store, err
}

// Arg returns an argument, empty if it was not given.
func Arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
