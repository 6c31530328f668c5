package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
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
func openServed(ctx context.Context, named string, o lineage.Options, distribute bool) (*lineage.Store, error) {
	at, _ := servedStore(named)
	options := postgres.Options{Store: at.store, Unsafe: at.unsafe, Durability: o.Durability, MustExist: o.MustExist, ID: o.ID, Distribute: distribute, Progress: o.Progress, Logger: o.Logger}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	engine, err := postgres.Open(ctx, at.dsn, options)
	if err != nil {
		// The driver may repeat the name, including its password.
		return nil, &DatabaseError{name: Redact(named), Err: err, secret: at.dsn}
	}
	return lineage.New(engine), nil
}
