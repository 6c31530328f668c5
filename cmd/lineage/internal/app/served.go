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
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/postgres"
)

// maxReplicas is how many processes keep copies of one store for the next time. More read it
// from the server whenever they begin.
const maxReplicas = 8

// localDir returns the directory for the files of the command line that belong to a store: that of the store itself, or
// one among the caches of the user if the store is on a server.
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
	var engine *postgres.Engine
	for i := range maxReplicas + 1 {
		options.Replica = ""
		if i < maxReplicas {
			options.Replica = filepath.Join(dir, fmt.Sprint("replica", i))
		}
		if engine, err = postgres.Open(ctx, at.dsn, options); !errors.Is(err, backend.ErrLocked) {
			break
		}
	}
	if err != nil {
		// The driver may repeat the name, password and all.
		return nil, &DatabaseError{name: Redact(named), Err: err, secret: at.dsn}
	}
	s := &servedEngine{engine, dir, options.Replica}
	if err := s.forgetCollected(ctx); err != nil {
		return nil, errors.Join(&DatabaseError{name: Redact(named), Err: err, secret: at.dsn}, engine.Close())
	}
	return lineage.New(s), nil
}

// servedEngine is a store on a server, with the files of the command line that belong to it.
type servedEngine struct {
	*postgres.Engine
	dir     string
	replica string // of this process; empty when it is in memory
}

// Collect implements backend.Collector.
func (s *servedEngine) Collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	report, err := s.Engine.Collect(ctx, o)
	if err == nil && !o.DryRun {
		err = s.forgetCollected(ctx)
	}
	return report, err
}

const (
	// epochFile has the epoch of the store that the files in the directory are of.
	epochFile = "epoch"
	// staleSuffix ends the name of a file that marks a directory of replicas that may be of
	// an earlier epoch.
	staleSuffix = ".stale"
)

// forgetCollected removes what the files of the command line have from before the last collection:
// the search index, and replicas that processes left. Replicas that are in use are removed later.
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
	if cmp.Or(string(was), "0\n") != is {
		if err := errors.Join(s.markStale(), search.Remove(s.dir)); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(is), 0o600); err != nil {
			return err
		}
	}
	stale, err := filepath.Glob(filepath.Join(s.dir, "*"+staleSuffix))
	for _, mark := range stale {
		if replica := strings.TrimSuffix(mark, staleSuffix); replica != s.replica {
			if err := postgres.RemoveReplicas(ctx, replica); errors.Is(err, backend.ErrLocked) {
				continue
			} else if err != nil {
				return err
			}
		}
		if err := os.Remove(mark); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

// markStale marks all replicas as possibly of an earlier epoch.
func (s *servedEngine) markStale() error {
	replicas, err := filepath.Glob(filepath.Join(s.dir, "replica?"))
	for _, replica := range replicas {
		err = errors.Join(err, os.WriteFile(replica+staleSuffix, nil, 0o600))
	}
	return err
}
