package main

import (
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
	"github.com/lineage-store/lineage/postgres"
)

// mostReplicas is how many processes keep copies of one store for the next time. More read it
// from the server whenever they begin.
const mostReplicas = 8

// localDir returns the directory for the files of the command line that belong to a store: that of the store itself, or
// one among the caches of the user if the store is on a server.
func localDir(store string) (string, error) {
	if !isServed(store) {
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
	place := fmt.Sprintf("%s %s %s %s", u.Host, query.Get("host"), u.Path, query.Get("store")) // whoever asks
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
	var engine *postgres.Engine
	for i := range mostReplicas + 1 {
		options.Replica = ""
		if i < mostReplicas {
			options.Replica = filepath.Join(dir, fmt.Sprint("replica", i))
		}
		if engine, err = postgres.Open(ctx, at.dsn, options); !errors.Is(err, backend.ErrLocked) {
			break
		}
	}
	if err != nil {
		// The driver may repeat the name, password and all.
		return nil, &databaseError{name: redact(named), err: err, secret: at.dsn}
	}
	return lineage.New(engine), nil
}
