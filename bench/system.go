package bench

import (
	"context"
	"io/fs"
	"path/filepath"
)

// Durabilities in rows.
const (
	full   = "full"
	normal = "normal"
)

// system is a way to store histories, with a durability.
type system struct {
	name       string
	durability string
	// maxLength is the longest measured history, 0 for any, and tooLong the reason.
	maxLength int
	tooLong   string
	// bare is set for systems that only write and do not store histories: they are measured where
	// histories are written.
	bare bool
	// elsewhere is set for systems in another process, whose CPU time and memory are not measured.
	elsewhere bool
	open      func(ctx context.Context, dir string) (store, error)
}

// store holds histories.
type store interface {
	start(ctx context.Context) (history, error)
	// size returns the bytes on disk; for stores in files also when closed.
	size() (int64, error)
	close() error
}

// history is a conversation that can be extended and forked. Acknowledged changes have the
// durability of the system.
type history interface {
	// extend adds a message and returns when it is acknowledged.
	extend(ctx context.Context, message []byte) error
	// load adds messages as fast as the system can.
	load(ctx context.Context, messages [][]byte) error
	// fork returns a history that continues the first n messages of this one; 0 means all.
	fork(ctx context.Context, n int) (history, error)
	// read reads the bodies of the last n messages, 0 for all, and returns their number.
	read(ctx context.Context, last int) (int, error)
}

// reopener is a store that can be closed and reopened, for timing.
type reopener interface {
	shut() error
	openAgain(ctx context.Context) error
}

// settler is a store with background work, such as indexing. It is completed before another
// system's round begins.
type settler interface {
	settle(ctx context.Context) error
}

// settling returns the function that waits for a store's background work, nil if there is none.
func settling(s store) func(ctx context.Context) error {
	if s, ok := s.(settler); ok {
		return s.settle
	}
	return nil
}

// Systems returns the names of the systems.
func Systems() []string {
	return []string{nameLineage, nameWrite, nameSQLite, namePostgres, nameDeepAgents}
}

// Names of systems.
const (
	nameLineage    = "lineage"
	nameWrite      = "write"
	nameSQLite     = "sqlite"
	namePostgres   = "postgres"
	nameDeepAgents = "deepagents"
)

// systems returns the systems to measure, and reports unavailable ones.
func (r *run) systems() []system {
	all := []system{
		lineageSystem(normal), lineageSystem(full),
		r.writeSystem(normal), r.writeSystem(full),
		sqliteSystem(normal), sqliteSystem(full),
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

// diskUse returns the total size of the files in a directory.
func diskUse(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // removed meanwhile
		}
		total += info.Size()
		return nil
	})
	return total, err
}
