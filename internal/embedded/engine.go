// Package embedded is the storage engine that runs inside a process on a local
// directory: the journal as truth, the index for reads, and a lock that keeps
// other processes out. It implements the port of package backend.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/memfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Names in a store directory.
const (
	journalDir = "journal"
	indexFile  = "index.bolt"
	// SocketFile is the socket on which the process with the lock serves other processes. Longer names with this
	// prefix are sockets being created.
	SocketFile = "SOCKET"
)

// IndexBeforeRepair is the name of the index that a repair replaced.
const IndexBeforeRepair = indexFile + ".before-repair"

// Options configure an engine. A zero field means its default.
type Options struct {
	// Durability of commits that request none. Default Full.
	Durability backend.Durability
	// SegmentSize is the size at which a journal segment is sealed. Default 64 MiB.
	SegmentSize int64
	// SyncInterval bounds how long a commit of normal durability stays unsynced.
	// Default 100 ms.
	SyncInterval time.Duration
	// OverlayBytes is the size of the part of the index in memory at which that part is folded into the file. Default
	// 16 MiB.
	OverlayBytes int64
	// NoPacking leaves sealed segments unpacked until Pack is called.
	NoPacking bool
	// ReadOnly opens a store, even a damaged one, without writing to it.
	ReadOnly bool
	// MustExist refuses to create a store.
	MustExist bool
	// ID is the id of a new store; random if zero.
	ID [16]byte
	// Wait is how long Open waits while another process holds the lock. Waiting, if not nil, is
	// called once before the first wait, with the error that Open would return without Wait.
	Wait    time.Duration
	Waiting func(held error)
	// Locked, if not nil, is called when Open holds the lock and has read nothing; Open returns
	// its error. Unlocking, if not nil, is called just before the lock is released.
	Locked    func() error
	Unlocking func()
	// Progress, if not nil, is called while the journal is replayed, with the bytes done and the
	// total.
	Progress func(done, total int64)
	// Logger reports repairs and failures in the background; nil discards them. Its handler is
	// called with locks held and must not use the store.
	Logger *slog.Logger
	// InMemory keeps everything in memory, and takes no lock. The directory is not used.
	InMemory bool
	// FS is the file system of the journal: by default the operating system's, or with InMemory
	// an empty one. It never contains the index and the lock.
	FS vfs.FS

	packBytes int64         // size of sealed segments at which packing in the background starts; backgroundBytes when 0
	packQuiet time.Duration // packing waits for so long without much writing; quietTime when packBytes is 0
	fullPack  int64         // size of the largest pack; fullBytes when 0
}

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	reads // of the current state

	dir     string
	opt     Options
	lock    *dirLock
	journal *journal.Journal
	index   *index.DB
	// damage is why a read-only store cannot be read to its end.
	damage error
	// rebuilt is set if the index was rebuilt from packs, so that its entries are in no sealed table.
	rebuilt bool

	submissions sync.Pool

	// write serializes commits. It guards the fields up to queue. committing is set while a
	// commit is being applied, and stays set if it panics.
	write           sync.Mutex
	committing      bool
	counts          keys.Counters
	state           entries.State
	judge           judge.Judge
	id, since       uint64 // the id of the last commit, and the first commit with that id
	own             uint64 // the id of commits made by this process
	sessions        sessions
	builder         entries.Builder
	createdContexts createdIDs
	createdRuns     createdIDs
	createdLookups  createdLookups
	queue           commitQueue
	closed          atomic.Bool

	cache *entries.Cache // its writer is the holder of the write lock

	// barrier is set while a collection is pending.
	barrier atomic.Pointer[barrier]
	// collected is set by the first collection of this process. From then on, chunks that were known when a body was
	// split may be gone when its block is stored.
	collected  atomic.Bool
	collecting collecting

	// packs are the packs below the index. It is replaced with the write lock held, or when no
	// other goroutine has the store.
	packs atomic.Pointer[packLayer]

	// packing is held while files of the journal are replaced, or must not be.
	packing sync.Mutex
	// unmergeable has the names of packs that could not be read. packing is held.
	unmergeable map[string]bool
	background  struct {
		ctx    context.Context
		cancel context.CancelCauseFunc
		busy   atomic.Bool  // packing
		sealed atomic.Bool  // segments were sealed since packing last looked
		opened *time.Timer  // starts packing of segments that were sealed before the store was opened
		left   atomic.Int64 // one more than the size of the journal that had such segments, until it was asked
		wait   sync.WaitGroup
	}

	frames   read.FrameCache
	filter   storeFilter
	arrivals arrivals
	// files is held for reading during calls, which use the files. Close locks it forever, and
	// then releases the held views.
	files sync.RWMutex
	holds holds
}

var (
	_ backend.Engine   = (*Engine)(nil)
	_ backend.Impaired = (*Engine)(nil)
)

// Open opens the store in dir, and creates it if there is none.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	where := dir
	if o.InMemory {
		dir, where = "", "in memory"
	}
	e := newEngine(dir)
	e.opt = o
	if e.opt.Durability == backend.DefaultDurability {
		e.opt.Durability = backend.Full
	}
	switch {
	case e.opt.FS != nil:
	case e.opt.InMemory:
		e.opt.FS = memfs.New()
	default:
		e.opt.FS = vfs.OS()
	}
	if e.opt.Logger == nil {
		e.opt.Logger = slog.New(slog.DiscardHandler)
	}
	if e.opt.packBytes == 0 {
		e.opt.packBytes, e.opt.packQuiet = backgroundBytes, quietTime
	}
	e.submissions.New = func() any { return new(submission) }
	if err := e.open(ctx); err != nil {
		e.release()
		return nil, fmt.Errorf("open store %s: %w", where, err)
	}
	return e, nil
}

func newEngine(dir string) *Engine {
	e := &Engine{
		dir:         dir,
		sessions:    newSessions(),
		cache:       entries.NewCache(),
		unmergeable: map[string]bool{},
	}
	e.reads.engine = e
	e.state.Source, e.state.Cache = (*source)(e), e.cache
	e.packs.Store(newPackLayer(0, 0, nil))
	e.background.ctx, e.background.cancel = context.WithCancelCause(context.Background())
	return e
}

func (e *Engine) open(ctx context.Context) error {
	if e.opt.InMemory {
		if e.opt.MustExist || e.opt.ReadOnly {
			return backend.ErrNotFound // a new store has nothing to read
		}
	} else if err := e.enterDir(ctx); err != nil {
		return err
	}
	// Until now another engine in this process may have had the store open.
	e.createdContexts, e.createdRuns = newCreatedIDs(structure.LastMade()), newCreatedIDs(structure.LastMade())
	e.createdLookups = newCreatedLookups()
	err := e.openFiles(ctx, false)
	if fault := e.indexFault(err); fault != nil {
		switch {
		case errors.Is(fault, errPending): // a collection passes through this state
			e.opt.Logger.Info("index follows an interrupted collection")
		case errors.Is(fault, errAhead): // the journal is damaged, which is reported below
		default:
			e.opt.Logger.Warn("index is rebuilt from the journal", "err", fault)
		}
		if err := e.abandonIndex(); err != nil {
			return err
		}
		err = e.openFiles(ctx, true)
	}
	if err != nil {
		return err
	}
	if e.damage != nil {
		e.opt.Logger.Warn("damaged journal is read up to the damage", "commit", e.index.Number(), "err", e.damage)
	}
	e.packLeftovers()
	return nil
}

// enterDir locks the directory, creating it if necessary, and deletes temporary files. With the
// lock held it checks again whether the store exists: another process may have created it.
func (e *Engine) enterDir(ctx context.Context) error {
	exists, err := e.exists()
	switch {
	case err != nil:
		return err
	case !exists && e.mustExist() && !e.hasLock():
		return backend.ErrNotFound
	case !exists:
		if err := os.MkdirAll(e.dir, 0o700); err != nil {
			return err
		}
		if err := vfs.OS().SyncDir(filepath.Dir(filepath.Clean(e.dir))); err != nil {
			return err
		}
	}
	if e.lock, err = waitForLock(ctx, e.dir, e.opt.ReadOnly, e.opt.Wait, e.opt.Waiting); err != nil {
		return err
	}
	if !exists {
		switch exists, err = e.exists(); {
		case err != nil:
			return err
		case !exists && e.mustExist():
			return backend.ErrNotFound
		}
	}
	if e.opt.Locked != nil {
		if err := e.opt.Locked(); err != nil {
			return err
		}
	}
	if e.opt.ReadOnly {
		return nil
	}
	return e.removeScratch()
}

func (e *Engine) mustExist() bool { return e.opt.MustExist || e.opt.ReadOnly }

// hasLock reports whether there is a lock file: another process may be creating the store.
func (e *Engine) hasLock() bool {
	_, err := os.Lstat(filepath.Join(e.dir, LockFile))
	return err == nil
}

// Damage implements backend.Impaired.
func (e *Engine) Damage() error { return e.damage }

// IsStore reports whether there is a store in a directory. A directory with an index but without
// a journal counts as a store.
func IsStore(dir string) (bool, error) { return isStore(vfs.OS(), dir) }

func isStore(fsys vfs.FS, dir string) (bool, error) {
	names, err := fsys.List(filepath.Join(dir, journalDir))
	if err == nil && len(names) > 0 || errors.Is(err, vfs.ErrNotRegular) {
		return err == nil, err
	}
	size, err := vfs.Size(filepath.Join(dir, indexFile))
	if errors.Is(err, vfs.ErrNotRegular) {
		return false, err
	}
	return err == nil && size > 0, nil
}

// exists reports whether dir is a store. It refuses a directory that contains other files.
func (e *Engine) exists() (bool, error) {
	if found, err := isStore(e.opt.FS, e.dir); found || err != nil {
		return found, err
	}
	entries, err := os.ReadDir(e.dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != journalDir && name != LockFile && !strings.HasPrefix(name, indexFile) && !strings.HasPrefix(name, SocketFile) {
			return false, fmt.Errorf("the directory holds %q and is not a store: %w", entry.Name(), backend.ErrExists)
		}
	}
	return false, nil
}

// replay updates the index to the end of the journal.
func (e *Engine) replay(ctx context.Context) error {
	state := e.index.State()
	if state.Number > 0 && state.Store != e.journal.StoreID() {
		return errForeignIndex
	}
	e.counts = keys.CountersOf(state.Counts)
	e.id, e.since = state.ID, state.Since
	if err := e.loadSessions(state); err != nil {
		return err
	}
	e.damage = cmp.Or(e.damage, e.journal.Damage())
	if e.journal.Cut() && state.Number > e.journal.Last() {
		return errAhead
	}
	if err := e.openPending(); err != nil {
		return err
	}
	if err := e.openPacks(); err != nil {
		return err
	}
	from := e.journal.After(journal.Position{Segment: state.Segment, Offset: state.Offset}, state.Number)
	var done int64
	total := e.journal.SizeFrom(from)
	var offsets []int
	for f, err := range e.journal.Frames(from) {
		if err != nil {
			if e.opt.ReadOnly && errors.Is(err, backend.ErrCorrupt) && !errors.Is(err, journal.ErrLookup) {
				e.damage = cmp.Or(e.damage, err)
				return nil // everything before the damage can be read
			}
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if !f.Mark && f.Number > state.Number {
			if offsets, err = e.replayFrame(f, offsets[:0]); err != nil {
				return fmt.Errorf("%s at byte %d: replay commit %d: %w", e.journal.SegmentName(f.Position.Segment), f.Position.Offset, f.Number, err)
			}
			if err := e.index.Throttle(); err != nil {
				return err
			}
		}
		done += f.End - f.Position.Offset
		if e.opt.Progress != nil {
			e.opt.Progress(done, max(total, done))
		}
	}
	e.saveHorizon(nil)
	e.rebuilt = state.Number == 0 && !e.opt.ReadOnly && slices.ContainsFunc(e.journal.Segments(), func(s journal.SegmentInfo) bool { return s.Packed })
	return nil
}

func (e *Engine) replayFrame(f journal.Frame, offsets []int) ([]int, error) {
	if b := e.barrier.Load(); b != nil && f.Number <= b.live.Until {
		c, err := e.decodeFrame(f)
		if err != nil {
			return offsets, err
		}
		b.filter(c.Commit)
		return offsets, e.replayCommit(c)
	}
	c, offsets, err := decodeOffsets(f.Payload, offsets)
	if err != nil {
		return offsets, err
	}
	return offsets, e.replayRecords(c, f, firstOffsets(f, offsets))
}

// firstOffsets returns the offsets of a frame's records when it was first written, given the
// current ones. The index refers to the original offsets.
func firstOffsets(f journal.Frame, offsets []int) []int {
	if f.Offsets != nil {
		return f.Offsets
	}
	return offsets
}

// replayRecords adds a commit to the index. offsets are those of its records in the frame's
// payload.
func (e *Engine) replayRecords(c *structure.Commit, f journal.Frame, offsets []int) error {
	c.Number = f.Number
	defer e.judge.Release()
	if err := e.decide(context.Background(), c, true); err != nil {
		return err
	}
	e.builder.Locate(f, offsets, e.packs.Load())
	e.request(&e.builder, f)
	e.publish(c, f)
	return nil
}

// Close implements backend.Engine. It waits for calls, but not for users of snapshots or
// sequences: these get errExpired.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.background.cancel(errClosing)
	if e.background.opened != nil {
		e.background.opened.Stop()
	}
	e.arrivals.announce()
	e.files.Lock()
	e.background.wait.Wait()
	e.expire()
	return e.release()
}

// release closes everything that was opened. It is not an error if the index cannot be folded,
// for example on a full disk: it is updated or rebuilt when the store is opened again.
func (e *Engine) release() error {
	var errs []error
	spare := e.indexIsSpare()
	if e.rebuilt && !spare && e.isSmall() {
		if err := e.compactIndex(context.Background()); err != nil {
			e.opt.Logger.Warn("index takes more space until the store is packed", "err", err)
		}
	}
	if e.index != nil {
		if err := e.index.Close(); err != nil {
			e.opt.Logger.Warn("index stays behind until the store is opened again", "err", err)
			spare = false
		}
	}
	if spare {
		if err := e.removeSpare(); err != nil {
			e.opt.Logger.Warn("index and lookup tables of a dense store are kept", "err", err)
		}
	}
	if e.journal != nil {
		errs = append(errs, e.journal.Close())
	}
	if e.lock != nil {
		if e.opt.Unlocking != nil {
			e.opt.Unlocking()
		}
		errs = append(errs, e.lock.release())
	}
	return errors.Join(errs...)
}

// begin keeps the files open until end. It does not block.
func (e *Engine) begin() error {
	if !e.files.TryRLock() { // Close has locked it or waits for it
		return fmt.Errorf("store: %w", backend.ErrClosed)
	}
	return nil
}

func (e *Engine) end() { e.files.RUnlock() }

// Sync implements backend.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	return e.journal.Sync(e.journal.Last())
}
