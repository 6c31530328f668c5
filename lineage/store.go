package lineage

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/sharing"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Types of other packages whose names callers write.
type (
	// ThreadID identifies a thread.
	ThreadID = structure.ThreadID
	// ContextID identifies a context.
	ContextID = structure.ContextID
	// SpanRef is the address of a span.
	SpanRef = structure.SpanRef
	// Window selects positions of a history.
	Window = structure.Window
	// Overrides are what a context sets differently from what it inherits.
	Overrides = structure.Overrides
	// Origin is who brought content.
	Origin = content.Origin
	// ContentID identifies a content block.
	ContentID = content.ID
	// Owner is what a value belongs to.
	Owner = structure.Owner
	// VerifyOptions say how thoroughly to check.
	VerifyOptions = backend.VerifyOptions
)

// Durabilities.
const (
	Full   = backend.Full
	Normal = backend.Normal
)

// Options configure a store. The zero value of each field is a default.
type Options struct {
	// Durability of changes. Default Full: nothing acknowledged is lost.
	Durability backend.Durability
	// SegmentSize is the size of a journal segment. Default 64 MiB.
	SegmentSize int64
	// SyncInterval bounds what power loss can take with Normal durability.
	// Default 100 ms.
	SyncInterval time.Duration
	// NoPacking keeps full segments as they are until Pack is called. Otherwise they
	// are packed in the background, some at a time, and those that were left from before
	// once the store has been open for a second.
	NoPacking bool
	// ReadOnly refuses changes through this store. Where the files cannot be written, or the journal is damaged, they
	// are only read; otherwise this process may have the store open for others, who change it.
	ReadOnly bool
	// MustExist refuses to make a store where there is none.
	MustExist bool
	// ID is the id of a store that is made, for a copy of another. By default it is random.
	ID structure.StoreID
	// NeverConnect refuses a store that another process has open, with an error that matches ErrLocked. Otherwise
	// Open connects to that process.
	NeverConnect bool
	// NeverServe keeps other processes out while this one has the store open.
	NeverServe bool
	// Wait is how long Open waits while another process has the store open and cannot be reached. Then, or almost at once
	// where it is 0, the error matches ErrLocked. Operations wait as long, and at least ten seconds, while such a
	// process is closing the store. Waiting, when not nil, is called once when Open begins to wait, with the error that
	// it would return without waiting.
	Wait    time.Duration
	Waiting func(held error)
	// Progress, when not nil, is told how much of the journal was replayed while
	// the store is opened.
	Progress func(done, total int64)
	// Logger reports repairs and what failed in the background, at the level of warnings or
	// above; nil discards it. Its handler must not use the store, which may be waiting for it.
	Logger *slog.Logger
	// Now returns the time that changes are stamped with. It is called by many
	// goroutines. Default time.Now.
	Now func() time.Time
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	engine     backend.Engine
	view       backend.View
	writer     *write.Writer
	extensions sync.Pool
	forkings   sync.Pool
	shelves    shelves
}

// A view hides the methods of an engine that write. The alias keeps the field unexported, so that
// no type assertion and no reflection leads to the engine.
type (
	reading = backend.View
	view    struct{ reading }
)

// Open opens the store in a directory, making one if there is none. Where another process has it
// open, the store is used through that process, as long as it has it open; then this one, or
// another that has connected, takes its place.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	return open(ctx, dir, o, embedded.Options{})
}

// OpenMemory opens an empty store in memory, for tests and for what need not be kept. It does what a
// store in a directory does, but nothing is on disk, and closing it discards everything. Backup
// writes it to a directory. ReadOnly and MustExist are ErrNotFound: there is no store to be found.
func OpenMemory(ctx context.Context, o Options) (*Store, error) {
	return open(ctx, "", o, embedded.Options{InMemory: true})
}

func open(ctx context.Context, dir string, o Options, below embedded.Options) (*Store, error) {
	below.Durability, below.SegmentSize, below.SyncInterval = o.Durability, o.SegmentSize, o.SyncInterval
	below.NoPacking, below.ReadOnly, below.MustExist, below.ID = o.NoPacking, o.ReadOnly, o.MustExist, o.ID
	below.Wait, below.Waiting, below.Progress, below.Logger = o.Wait, o.Waiting, o.Progress, o.Logger
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
	return sharing.Open(ctx, dir, sharing.Options{Options: below, NeverConnect: o.NeverConnect, NeverServe: o.NeverServe})
}

// New returns a store on an engine, which closes with it. Stores on one engine are the
// same store: a context of one can be given to a context of another. The engine must be
// comparable, as pointers are.
func New(engine backend.Engine) *Store {
	return newStore(engine, nil)
}

func newStore(engine backend.Engine, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return onEngine(engine, write.New(engine, now))
}

func onEngine(engine backend.Engine, writer *write.Writer) *Store {
	s := &Store{engine: engine, view: view{engine}, writer: writer}
	s.extensions.New = func() any { return new(extension) }
	s.forkings.New = func() any { return new(forking) }
	return s
}

func init() {
	write.Of = func(store any) *write.Writer { return store.(*Store).writer }
}

// Close lets go of the store. What was acknowledged stays. It waits for calls and for
// verifications, but not for other sequences that are being read: these end with
// ErrExpired.
func (s *Store) Close() error { return s.engine.Close() }

// View returns what reads the records of the store: its latest state, snapshots of it, and its
// commits. Nothing can be written through it. It ends when the store is closed.
func (s *Store) View() backend.View { return s.view }

// Sync makes every change so far survive power loss.
func (s *Store) Sync(ctx context.Context) error { return s.engine.Sync(ctx) }

// Stats counts what the store holds.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) { return s.engine.Stats(ctx) }

// Verify checks what is stored and yields what it finds wrong.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) iter.Seq2[backend.Finding, error] {
	return s.engine.Verify(ctx, o)
}

// change commits what fill puts into a batch, and calls it again while others come first.
func (s *Store) change(ctx context.Context, fill func(b *write.Batch, t write.Try) error) error {
	_, err := s.writer.Make(ctx, fill)
	return err
}
