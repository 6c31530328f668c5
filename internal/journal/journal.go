// Package journal stores commits in order in a directory of append-only segments. It is
// the source of truth of an embedded store: everything else can be rebuilt from it.
//
// A commit is one frame, written with one write. A frame is complete or does not exist.
// One sync makes the frames of all waiting commits durable; see [Journal.Sync].
package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Position is where a frame starts.
type Position struct {
	Segment uint32
	Offset  int64
}

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

	// segments has all files in order; current is the same list as a view. The lock also
	// guards the files of segments. tail serializes appends.
	segmentsMu sync.RWMutex
	segments   []*segment
	current    atomic.Pointer[View]
	replaced   []*View    // replaced views to release
	doomed     []*segment // rewritten, but used by older views
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

// ID returns the id of new commits. A random id is chosen each time the journal is opened,
// so that lost commits and later ones with the same numbers have different ids.
func (j *Journal) ID() uint64 { return j.id }

// SetID sets the id of new commits, for a journal whose commit ids come from elsewhere.
func (j *Journal) SetID(id uint64) {
	j.tail.Lock()
	defer j.tail.Unlock()
	if id != j.id {
		j.id, j.tail.stated = id, false
	}
}

// Append writes the payload as the next commit, and returns its frame without the payload.
// once, if not nil, is the commit's request. After an error the journal is unchanged;
// until that is ensured, it accepts no commits. Append makes nothing durable; normal
// requests a sync within the interval.
func (j *Journal) Append(payload []byte, once *OnceWrite, normal bool) (Frame, error) {
	j.tail.Lock()
	defer j.tail.Unlock()
	if err := j.writable(); err != nil {
		return Frame{}, err
	}
	if err := CheckSize(len(payload)); err != nil {
		return Frame{}, err
	}
	s := j.lastSegment()
	if j.tail.torn {
		if err := j.clear(s); err != nil {
			return Frame{}, err
		}
	}
	if end := s.end.Load(); end > headerSize && end+int64(len(payload))+frameOverhead > j.opt.SegmentSize {
		next, err := j.roll(s)
		if err != nil {
			return Frame{}, fmt.Errorf("begin journal segment: %w", err)
		}
		s = next
	}
	f, err := j.write(s, j.tail.last+1, false, payload, once, normal)
	if err != nil {
		return Frame{}, err
	}
	j.tail.last, j.tail.stated = f.Number, true
	j.sync.written.Store(f.Number)
	if normal {
		j.syncLater()
	}
	return f, nil
}

// CheckSize returns ErrTooLarge for a payload larger than MaxPayload.
func CheckSize(payload int) error {
	if payload > MaxPayload {
		return fmt.Errorf("commit of %d bytes, at most %d: %w", payload, MaxPayload, backend.ErrTooLarge)
	}
	return nil
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

// write appends a frame to the segment, with mapped through the window if possible.
func (j *Journal) write(s *segment, number uint64, mark bool, payload []byte, once *OnceWrite, mapped bool) (Frame, error) {
	var payloadAt int
	trailer := j.tail.trailer[:0]
	request := once.as(number, s.first)
	if !mark {
		id := j.id
		if j.tail.stated {
			id = 0
		}
		trailer = appendTrailer(trailer, id, request)
	}
	j.tail.buf, payloadAt = appendFrame(j.tail.buf[:0], s.crc, number, min(j.sync.durableNumber(), number), mark, payload, trailer)
	at, size := s.end.Load(), int64(len(j.tail.buf))
	err := j.put(s, j.tail.buf, at, mapped)
	if cap(j.tail.buf) > 1<<20 {
		j.tail.buf = nil // do not retain the memory of a huge commit
	}
	if err != nil {
		err = fmt.Errorf("write to %s: %w", s.name, err)
		j.tail.torn = true
		return Frame{}, errors.Join(err, j.clear(s))
	}
	f := Frame{
		Position:      Position{Segment: s.segment, Offset: at},
		End:           at + size,
		Number:        number,
		ID:            j.id,
		Once:          request,
		Mark:          mark,
		PayloadOffset: at + int64(payloadAt),
	}
	s.end.Store(f.End)
	return f, nil
}

// clear removes the bytes of a failed write after the end of the segment, and syncs:
// otherwise they could reappear after power loss in the place of a later frame. Until it
// succeeds, nothing is appended.
func (j *Journal) clear(s *segment) error {
	if err := j.tail.mapped.close(); err != nil {
		return err
	}
	if err := s.file.Truncate(s.end.Load()); err != nil {
		return fmt.Errorf("clear a failed write from %s: %w", s.name, err)
	}
	if err := j.sync.again(); err != nil {
		return err
	}
	j.tail.torn, j.tail.mapped.grown = false, false
	return nil
}

// Close makes everything durable, writes a mark, and closes the files. It returns an error
// if a commit may not be durable. It may be called twice.
func (j *Journal) Close() error {
	j.tail.Lock()
	defer j.tail.Unlock()
	if j.tail.closed {
		return nil
	}
	j.tail.closed = true
	var err error
	if !j.opt.ReadOnly {
		err = j.finish()
	}
	j.sync.stop()
	j.segmentsMu.Lock()
	defer j.segmentsMu.Unlock()
	j.filesGone = true
	for _, s := range slices.Concat(j.segments, j.doomed) {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}
	return err
}

// finish makes every commit durable and writes a mark after the last one.
func (j *Journal) finish() error {
	s := j.lastSegment()
	if _, err := j.trim(s); err != nil {
		j.opt.Logger.Warn("reserved space is not cut off before the store is opened again", "file", s.name, "err", err)
	}
	if err := j.Sync(j.tail.last); err != nil {
		return err
	}
	if j.tail.torn {
		if err := j.clear(s); err != nil {
			return err
		}
	}
	if j.sync.failure() != nil || j.marked == j.tail.last {
		return nil
	}
	// The mark is only evidence, so it is not synced and may fail.
	if _, err := j.write(s, j.tail.last, true, nil, nil, false); err != nil {
		j.opt.Logger.Warn("final mark is not written", "file", s.name, "err", err)
	}
	return nil
}
