// Package journal keeps commits in order in a directory of append-only segments.
// It is the truth of an embedded store: everything else can be made from it.
//
// A commit is one frame, written with one write. A frame is whole or it is not
// there. Frames are made durable by one sync for all that wait; see [Journal.Sync].
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
	// FS is the file system; the operating system's when nil.
	FS vfs.FS
	// SegmentSize is the size at which a segment is sealed and the next begun.
	// Default 64 MiB, at most 4 GiB.
	SegmentSize int64
	// SyncInterval is how long a commit may stay unsynced that nobody waits for.
	// Default 100 ms.
	SyncInterval time.Duration
	// Durable is the last commit that is known, from elsewhere, to have been
	// durable, and DurableEnd where its frame ends. Damage up to there is
	// corruption, never a torn write. Scanning the last segment starts there.
	Durable    uint64
	DurableEnd Position
	// CacheBytes is how much of what packs hold is kept decoded. Default 32 MiB.
	CacheBytes int64
	// ReadOnly opens the journal without writing, even if it is damaged.
	ReadOnly bool
	// MustExist refuses to make a journal where there is none.
	MustExist bool
	// Store is the store id of a journal that is made; random when zero.
	Store [16]byte
	// Logger reports what recovery did and what failed in the background; nil discards it.
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
	dir    string
	opt    Options
	store  [16]byte
	id     uint64 // of the commits that are written
	damage error  // set when opened read-only in spite of damage
	marked uint64 // the last commit that a mark called durable when opened

	// segments has every file in order; current is the same as a view. The lock
	// also guards the files of segments. Appending is serialised by tail.
	segmentsMu sync.RWMutex
	segments   []*segment
	current    atomic.Pointer[View]
	letGo      []*View    // replaced, and to be released
	doomed     []*segment // rewritten, and read by views that were taken before
	filesGone  bool       // closed: no file is opened any more

	rewriting sync.Mutex // held by a rewrite
	cache     *pack.Cache

	tail struct {
		sync.Mutex
		last uint64 // number of the last commit
		buf  []byte
		// trailer is the memory of the trailer that is being written.
		trailer [mostTrailer]byte
		stated  bool // the last segment says which id its commits have from here on
		torn    bool // bytes of a failed write may lie behind the end
		mapped  tailWindow
		closed  bool
	}

	sync syncState
}

// StoreID returns the random id that the journal's segments carry.
func (j *Journal) StoreID() [16]byte { return j.store }

// Damage returns what is wrong with a journal that was opened read-only all the
// same, or nil.
func (j *Journal) Damage() error { return j.damage }

// Last returns the number of the last commit, 0 when there is none.
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

// Size returns how many bytes the files take.
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

// ID returns the id of the commits that are written. It is random, and another each time a
// journal is opened: so commits that were lost, and those that took their numbers, have
// different ids.
func (j *Journal) ID() uint64 { return j.id }

// SetID sets the id of the commits that are written from now on. It is for a journal whose
// commits get their ids elsewhere.
func (j *Journal) SetID(id uint64) {
	j.tail.Lock()
	defer j.tail.Unlock()
	if id != j.id {
		j.id, j.tail.stated = id, false
	}
}

// Append writes the payload as the frame of the next commit and returns its
// frame without the payload. once, when not nil, is what it says of its session. When it fails the journal is as it was before; while
// that cannot be seen to, it takes no commits. Append does not make anything
// durable; normal asks for a sync to follow within the interval.
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

// CheckSize returns ErrTooLarge for a payload that no frame can carry.
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

// write puts one frame at the end of the segment, through memory if it may.
func (j *Journal) write(s *segment, number uint64, mark bool, payload []byte, once *OnceWrite, mapped bool) (Frame, error) {
	var payloadAt int
	trailer := j.tail.trailer[:0]
	said := once.as(number, s.first)
	if !mark {
		id := j.id
		if j.tail.stated {
			id = 0
		}
		trailer = appendTrailer(trailer, id, said)
	}
	j.tail.buf, payloadAt = appendFrame(j.tail.buf[:0], s.crc, number, min(j.sync.durableNumber(), number), mark, payload, trailer)
	at, size := s.end.Load(), int64(len(j.tail.buf))
	err := j.put(s, j.tail.buf, at, mapped)
	if cap(j.tail.buf) > 1<<20 {
		j.tail.buf = nil // do not hold on to the largest commit ever
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
		Once:          said,
		Mark:          mark,
		PayloadOffset: at + int64(payloadAt),
	}
	s.end.Store(f.End)
	return f, nil
}

// clear takes back what a failed write left behind the end of the segment. That
// is synced, or else power loss could bring it back in place of a later frame.
// While it fails nothing is appended.
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

// Close makes everything durable, says so in the journal, and lets go of the
// files. It fails when a commit may not be durable. It is safe to repeat.
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

// finish leaves every commit durable, and a mark behind the last that says so.
func (j *Journal) finish() error {
	s := j.lastSegment()
	if _, err := j.trim(s); err != nil {
		j.opt.Logger.Warn("reserved room stays until the store is opened", "file", s.name, "err", err)
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
	// Losing the mark loses nothing but a proof, so it is not synced, and may fail.
	if _, err := j.write(s, j.tail.last, true, nil, nil, false); err != nil {
		j.opt.Logger.Warn("final mark is not written", "file", s.name, "err", err)
	}
	return nil
}
