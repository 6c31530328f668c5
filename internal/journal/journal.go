// Package journal stores commits in order in a directory of append-only segments. It is
// the source of truth of an embedded store: everything else can be rebuilt from it.
//
// A commit is one frame, written with one write. A frame is complete or does not exist.
// One sync makes the frames of all waiting commits durable; see [Journal.Sync].
package journal

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Options configure a journal. The zero value of each field is a default.
type Options struct {
	// FS is the file system; the operating system's if nil.
	FS vfs.FS
	// SegmentSize is the size at which a segment is sealed and the next one is created.
	// Default 64 MiB, at most 4 GiB.
	SegmentSize int64
	// SyncInterval is how long a commit may stay unsynced if nobody waits for it. Default
	// 100 ms.
	SyncInterval time.Duration
	// Durable is the last commit known from elsewhere to be durable, and DurableEnd the
	// end of its frame. Damage before it is corruption, never a torn write. The scan of
	// the last segment starts there.
	Durable    uint64
	DurableEnd Position
	// CacheBytes is the size of the cache of decoded pack data. Default 32 MiB.
	CacheBytes int64
	// ReadOnly opens the journal without writing, even if it is damaged.
	ReadOnly bool
	// MustExist refuses to create a journal.
	MustExist bool
	// Store is the store id of a new journal; random if zero.
	Store [16]byte
	// Logger reports recovery and failures in the background; nil discards them.
	Logger *slog.Logger
}

const defaultCache = 32 << 20

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.SegmentSize <= 0 {
		o.SegmentSize = 64 << 20
	}
	o.SegmentSize = min(max(o.SegmentSize, 4<<10), 1<<32-1)
	if o.SyncInterval <= 0 {
		o.SyncInterval = 100 * time.Millisecond
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCache
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	dir        string
	opt        Options
	store      [16]byte
	id         uint64 // of new commits
	damage     error  // set when opened read-only despite damage
	unreadable bool   // the damage is a file that cannot be opened
	marked     uint64 // the last commit proved durable by a mark when opened

	// segments has all files in order; current is the same list as a file set. The lock also
	// guards the files of segments. tail serializes appends.
	segmentsMu sync.RWMutex
	segments   []*segment
	current    atomic.Pointer[FileSet]
	replaced   []*FileSet // replaced file sets to release
	doomed     []*segment // rewritten, but used by older file sets
	filesGone  bool       // closed: no file may be opened

	rewriting sync.Mutex // held during a rewrite
	cache     *pack.Cache

	tail struct {
		sync.Mutex
		last uint64 // number of the last commit
		buf  []byte
		// trailer is the memory of the current trailer.
		trailer [maxTrailer]byte
		stated  bool // the last segment states the id of its next commits
		torn    bool // bytes of a failed write may follow the end
		mapped  tailWindow
		closed  bool
	}

	sync syncState
}

// StoreID returns the store id in the journal's segments.
func (j *Journal) StoreID() [16]byte { return j.store }

// Damage returns the damage of a journal that was opened read-only despite it, or nil.
func (j *Journal) Damage() error { return j.damage }

// Cut reports whether a read-only journal has lost its end: durable commits are missing, and no file
// that might have them is there.
func (j *Journal) Cut() bool { return j.damage != nil && !j.unreadable }

// Last returns the number of the last commit, or 0.
func (j *Journal) Last() uint64 {
	j.tail.Lock()
	defer j.tail.Unlock()
	return j.tail.last
}

// End returns the position after the last frame.
func (j *Journal) End() Position {
	s := j.lastSegment()
	return Position{Segment: s.segment, Offset: s.end.Load()}
}

// Size returns the total size of the files.
func (j *Journal) Size() int64 {
	j.segmentsMu.RLock()
	defer j.segmentsMu.RUnlock()
	var n int64
	for _, s := range j.segments {
		n += s.end.Load()
	}
	return n
}

func (j *Journal) lastSegment() *segment {
	segments := j.current.Load().segments
	return segments[len(segments)-1]
}

func (j *Journal) writable() error {
	if j.tail.closed {
		return fmt.Errorf("journal: %w", backend.ErrClosed)
	}
	if j.opt.ReadOnly {
		return fmt.Errorf("journal: %w", backend.ErrReadOnly)
	}
	return j.sync.failure()
}

// FileSet is the list of the journal's files when it was taken. It continues
// to read files that a rewrite has replaced since. Segments created later are
// read too. It is safe for concurrent use and must be released.
type FileSet struct {
	j        *Journal
	segments []*segment
	refs     atomic.Int64
}
