package embedded

import (
	"context"
	"log/slog"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/internal/vfs/memfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Defaults of packing in the background: see Options.packBytes and packQuiet.
const (
	backgroundBytes = 32 << 20
	quietTime       = 2 * time.Second
)

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
	// Prune, if not nil, is called by a collection that removed something, before it ends. If it returns nil, nothing of that
	// is in derived data in the directory, such as a search index, which then stays. Otherwise the files are removed.
	Prune func(ctx context.Context, dir string, e backend.Engine) error
	// InMemory keeps everything in memory, and takes no lock. The directory is not used.
	InMemory bool
	// FS is the file system of the journal: by default the operating system's, or with InMemory
	// an empty one. It never contains the index and the lock.
	FS vfs.FS

	packBytes int64         // size of sealed segments at which packing in the background starts; backgroundBytes when 0
	packQuiet time.Duration // packing waits for so long without much writing; quietTime when packBytes is 0
	fullPack  int64         // size of the largest pack; fullBytes when 0
}

// withDefaults sets the fields that are zero.
func (o Options) withDefaults() Options {
	if o.Durability == backend.DefaultDurability {
		o.Durability = backend.Full
	}
	switch {
	case o.FS != nil:
	case o.InMemory:
		o.FS = memfs.New()
	default:
		o.FS = vfs.OS()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.packBytes == 0 {
		o.packBytes, o.packQuiet = backgroundBytes, quietTime
	}
	return o
}
