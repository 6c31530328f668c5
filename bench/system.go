package bench

import (
	"context"
	"io/fs"
	"path/filepath"
)

// Durabilities, as rows name them.
const (
	full   = "full"
	normal = "normal"
)

// A system is one way to keep histories, at one durability.
type system struct {
	name       string
	durability string
	// most is the longest history that it is measured at, 0 for any, and tooLong says
	// why: those that write all of a history at each step would take hours at the
	// longest.
	most    int
	tooLong string
	// bare is set for what does not keep histories, only writes: it is measured
	// where histories are written.
	bare bool
	// elsewhere is set for what works in another process, whose processor time and
	// memory are not this one's.
	elsewhere bool
	open      func(ctx context.Context, dir string) (store, error)
}

// A store has histories.
type store interface {
	start(ctx context.Context) (history, error)
	// size is how many bytes are on disk, of what is in files also when it is closed.
	size() (int64, error)
	close() error
}

// A history is a conversation that can be extended and forked. Whatever it
// acknowledges is as durable as its system says.
type history interface {
	// extend adds a message and returns when it is acknowledged.
	extend(ctx context.Context, message []byte) error
	// load adds messages as fast as the system can.
	load(ctx context.Context, messages [][]byte) error
	// fork returns a history that goes on from the first n messages of this one; 0 is
	// all of them.
	fork(ctx context.Context, n int) (history, error)
	// read reads the bodies of the last n messages, 0 for all, and returns how many
	// there were.
	read(ctx context.Context, last int) (int, error)
}

// reopener is a store that can be closed and opened again, for timing.
type reopener interface {
	shut() error
	openAgain(ctx context.Context) error
}

// settler is a store that leaves work to the background, such as sorting into an
// index. What a round leaves is done before another system's round begins.
type settler interface {
	settle(ctx context.Context) error
}

// settling returns how a store's background work is waited for, nil for those that
// leave none.
func settling(s store) func(ctx context.Context) error {
	if s, ok := s.(settler); ok {
		return s.settle
	}
	return nil
}

// Systems returns the names of what can be compared.
func Systems() []string {
	return []string{nameLineage, nameWrite, nameLeast, nameBolt, nameSQLite, namePostgres, nameFiles, nameSnapshots, nameDeepAgents}
}

// rewrites says why a system is not measured at long histories.
const rewrites = "it writes or reads the whole history at each step: too slow at this length"

// Names of systems.
const (
	nameLineage    = "lineage"
	nameWrite      = "write"
	nameLeast      = "least"
	nameBolt       = "bbolt"
	nameSQLite     = "sqlite"
	namePostgres   = "postgres"
	nameFiles      = "json-files"
	nameSnapshots  = "snapshots"
	nameDeepAgents = "deepagents"
)

// systems returns those to measure, and reports those that cannot be.
func (r *run) systems() []system {
	all := []system{
		lineageSystem(normal), lineageSystem(full),
		r.writeSystem(normal), r.writeSystem(full),
		r.leastSystem(),
		boltSystem(normal), boltSystem(full),
		sqliteSystem(normal), sqliteSystem(full),
		filesSystem(normal), filesSystem(full),
		snapshotSystem(normal), snapshotSystem(full),
	}
	if r.postgres != "" {
		all = append(all, postgresSystem(r.postgres, normal), postgresSystem(r.postgres, full))
	} else {
		r.skip(Skipped{System: namePostgres, Why: r.noPostgres})
	}
	if node, err := r.nodeSystem(); err == nil {
		all = append(all, node)
	} else {
		r.skip(Skipped{System: nameDeepAgents, Why: err.Error()})
	}
	var wanted []system
	for _, s := range all {
		if r.wantsSystem(s.name) {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// diskUse returns the size of the files below a directory.
func diskUse(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // it went away meanwhile
		}
		total += info.Size()
		return nil
	})
	return total, err
}
