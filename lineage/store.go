package lineage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/sharing"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Durabilities.
const (
	Full   = backend.Full
	Normal = backend.Normal
)

// Options configure a store. A zero field means its default.
type Options struct {
	// Durability of changes. Default Full: no acknowledged change is lost.
	Durability backend.Durability
	// SegmentSize is the size of a journal segment. Default 64 MiB.
	SegmentSize int64
	// SyncInterval limits how much a power loss can take with Normal durability. Default 100 ms.
	SyncInterval time.Duration
	// NoPacking disables packing of full segments in the background; Pack still packs them. By
	// default, segments left from earlier are packed once the store has been open for a second.
	NoPacking bool
	// ReadOnly refuses changes through this store. If the files cannot be written or the journal is damaged, they are
	// only read. Otherwise this process may serve other processes that do change the store.
	ReadOnly bool
	// MustExist fails if there is no store instead of creating one.
	MustExist bool
	// ID is the id of a new store that will be a copy of another. Default: random.
	ID structure.StoreID
	// NeverConnect makes Open fail with ErrLocked if another process has the store open. By default
	// it connects to that process.
	NeverConnect bool
	// NeverServe does not let other processes connect to this one.
	NeverServe bool
	// Wait is how long Open waits for a process that has the store open and cannot be reached,
	// before it fails with ErrLocked. With 0 it hardly waits. Operations wait as long, but at least
	// ten seconds, while such a process is closing the store. Waiting, when not nil, is called once
	// when Open begins to wait, with the error that it would otherwise return.
	Wait    time.Duration
	Waiting func(held error)
	// Progress, when not nil, is called while the journal is replayed, with the bytes replayed so
	// far.
	Progress func(done, total int64)
	// Logger gets repairs and failures in the background, at level warning or above. Default:
	// discarded. Its handler must not use the store: that could deadlock.
	Logger *slog.Logger
	// Prune, when not nil, keeps derived data in the directory of the store when a collection removes something: it removes
	// that from the data. See search.Prune and usage.Prune. Without it, or after an error of it, a collection removes the search index,
	// which the next search rebuilds. It is called in the process that has the files of the store open.
	Prune func(ctx context.Context, dir string, engine backend.Engine) error
	// Now returns the time for changes. It is called concurrently. Default time.Now.
	Now func() time.Time
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	engine        backend.Engine
	view          backend.View
	writer        *write.Writer
	extensions    sync.Pool
	forkings      sync.Pool
	documentCache documentCache
}

// view hides the writing methods of an engine. The alias keeps the field unexported, so that
// neither a type assertion nor reflection reaches the engine.
type (
	reading = backend.View
	view    struct{ reading }
)

// Open opens the store in a directory and creates it if there is none. If another process has it open, this one uses
// the store through that process. When that process closes the store, one of the connected processes becomes its
// owner.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	return open(ctx, dir, o, embedded.Options{})
}

// OpenMemory opens an empty store in memory, for tests and temporary data. It has all operations of
// a store in a directory, but Close discards its content. Backup writes it to a directory. ReadOnly
// and MustExist are ErrNotFound.
func OpenMemory(ctx context.Context, o Options) (*Store, error) {
	return open(ctx, "", o, embedded.Options{InMemory: true})
}

func open(ctx context.Context, dir string, o Options, below embedded.Options) (*Store, error) {
	below.Durability, below.SegmentSize, below.SyncInterval = o.Durability, o.SegmentSize, o.SyncInterval
	below.NoPacking, below.ReadOnly, below.MustExist, below.ID = o.NoPacking, o.ReadOnly, o.MustExist, o.ID
	below.Wait, below.Waiting, below.Progress, below.Logger, below.Prune = o.Wait, o.Waiting, o.Progress, o.Logger, o.Prune
	engine, err := openEngine(ctx, dir, o, below)
	if err != nil {
		return nil, err
	}
	return newStore(engine, o.Now), nil
}

func openEngine(ctx context.Context, dir string, o Options, below embedded.Options) (backend.Engine, error) {
	if below.InMemory {
		return embedded.Open(ctx, dir, below)
	}
	full, err := filepath.Abs(dir) // files are opened later, too, when the program may be in another directory
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return sharing.Open(ctx, full, sharing.Options{Options: below, NeverConnect: o.NeverConnect, NeverServe: o.NeverServe})
}

// New returns a store on an engine, which Close closes. Stores on one engine are the same store: a
// context of one can be passed to another. The engine must be comparable, like a pointer.
func New(engine backend.Engine) *Store {
	return newStore(engine, nil)
}

func newStore(engine backend.Engine, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	engine = write.Outside{Engine: write.Inner(engine)}
	return onEngine(engine, write.New(engine, now))
}

func onEngine(engine backend.Engine, writer *write.Writer) *Store {
	return &Store{engine: engine, view: view{engine}, writer: writer}
}

func init() {
	write.Of = func(store any) *write.Writer { return store.(*Store).writer }
}

// Close closes the store. Acknowledged changes are kept. It waits for running calls and
// verifications, but not for other open sequences: these end with ErrExpired.
func (s *Store) Close() error { return s.engine.Close() }

// View gives read access to the records of the store: its latest state, snapshots and commits. It
// is valid until Close.
func (s *Store) View() backend.View { return s.view }

// Sync makes all changes so far durable.
func (s *Store) Sync(ctx context.Context) error { return s.engine.Sync(ctx) }

// Stats returns counts of what the store holds.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) { return s.engine.Stats(ctx) }

// Verify checks the stored data and yields each problem found.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) iter.Seq2[backend.Finding, error] {
	return s.engine.Verify(ctx, o)
}

// ability returns the engine as an interface that not every engine implements. If this one does not, the error
// matches errors.ErrUnsupported.
func ability[T any](ctx context.Context, s *Store) (T, error) {
	if e, ok := s.engine.(write.Outside); ok {
		if err := e.Check(ctx); err != nil {
			return *new(T), err
		}
	}
	able, ok := write.Inner(s.engine).(T)
	if !ok {
		return able, errors.ErrUnsupported
	}
	return able, nil
}

// change commits the batch that fill prepares. It calls fill again when other commits come first.
func (s *Store) change(ctx context.Context, fill func(b *write.Batch, t write.Try) error) error {
	_, err := s.writer.Make(ctx, fill)
	return err
}

func (s *Store) inTransaction() bool {
	_, staged := s.engine.(*write.Stage)
	return staged
}

// runs returns a lookup of runs that reads each run once.
func (s *Store) runs(ctx context.Context) structure.RunLookup { return backend.Runs(ctx, s.engine) }
