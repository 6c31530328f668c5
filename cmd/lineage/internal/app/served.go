package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/postgres"
)

// localDir returns the directory for the command line's files about a store: that of the store itself, or one among
// the user's caches if the store is on a server.
func localDir(store string) (string, error) {
	if !IsServed(store) {
		return store, nil
	}
	u, err := url.Parse(store)
	if err != nil {
		return "", err
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	query := u.Query()
	place := fmt.Sprintf("%s %s %s %s", u.Host, query.Get("host"), u.Path, query.Get("store")) // without the user
	dir := filepath.Join(caches, "lineage", fmt.Sprintf("%x", sha256.Sum256([]byte(place)))[:32])
	return dir, os.MkdirAll(dir, 0o700)
}

// openServed opens a store on a server.
func openServed(ctx context.Context, named string, o lineage.Options) (*lineage.Store, error) {
	at, _ := servedStore(named)
	dir, err := localDir(named)
	if err != nil {
		return nil, err
	}
	options := postgres.Options{Store: at.store, Unsafe: at.unsafe, Durability: o.Durability, MustExist: o.MustExist, ID: o.ID, Progress: o.Progress, Logger: o.Logger}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	engine, err := postgres.Open(ctx, at.dsn, options)
	if err != nil {
		// The driver may repeat the name, including its password.
		return nil, &DatabaseError{name: Redact(named), Err: err, secret: at.dsn}
	}
	s := &servedEngine{engine, dir}
	if err := s.forgetCollected(ctx); err != nil {
		return nil, errors.Join(&DatabaseError{name: Redact(named), Err: err, secret: at.dsn}, engine.Close())
	}
	return lineage.New(s), nil
}

// servedEngine is the engine of a store on a server. It manages the command line's files about the store.
type servedEngine struct {
	*postgres.Engine
	dir string
}

// Collect implements backend.Collector.
func (s *servedEngine) Collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	report, err := s.Engine.Collect(ctx, o)
	if err == nil && !o.DryRun {
		err = s.forgetCollected(ctx)
	}
	return report, err
}

// epochFile contains the epoch of the store to which the files in the directory belong.
const epochFile = "epoch"

// forgetCollected removes files with data from before the last collection: the search index.
func (s *servedEngine) forgetCollected(ctx context.Context) error {
	epoch, err := s.Epoch(ctx)
	if err != nil {
		return err
	}
	is, file := fmt.Sprintf("%x\n", epoch), filepath.Join(s.dir, epochFile)
	was, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if cmp.Or(string(was), "0\n") == is {
		return nil
	}
	if err := search.Remove(s.dir); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(is), 0o600)
}
