package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Open opens the journal in dir, and creates it if there is none. A torn write at its
// end, left by a crash, is cut off. Other damage is an error that matches
// backend.ErrCorrupt; with ReadOnly the journal opens up to the damage.
func Open(dir string, o Options) (*Journal, error) {
	o.setDefaults()
	j := &Journal{dir: dir, opt: o, cache: pack.NewCache(o.CacheBytes)}
	for j.id == 0 {
		var id [8]byte
		rand.Read(id[:])
		j.id = binary.LittleEndian.Uint64(id[:])
	}
	err := j.open()
	if err == nil {
		j.segmentsMu.Lock()
		j.use(j.segments)
		j.segmentsMu.Unlock()
	}
	if err != nil {
		for _, s := range j.segments {
			s.close()
		}
		return nil, err
	}
	return j, nil
}

func (j *Journal) open() error {
	empty, err := j.loadSegments()
	if err != nil {
		return err
	}
	proven := j.opt.Durable
	if empty != nil { // it was created when the commits before it were durable
		proven = max(proven, max(empty.first, 1)-1)
	}
	if len(j.segments) == 0 {
		switch {
		case proven > 0:
			return &backend.CorruptError{File: j.dir, What: fmt.Sprintf("commit %d was durable, but all files of the journal are missing: all commits are lost", proven)}
		case empty != nil && (j.opt.ReadOnly || j.opt.MustExist):
			return fmt.Errorf("journal %s: its only file, %s, has no commits: %w", j.dir, filepath.Base(empty.name), backend.ErrNotFound)
		case j.opt.ReadOnly || j.opt.MustExist:
			return fmt.Errorf("journal %s: %w", j.dir, backend.ErrNotFound)
		}
		if err := j.drop(empty); err != nil {
			return err
		}
		return j.begin()
	}
	last := j.segments[len(j.segments)-1]
	if last.pack != nil {
		return j.openAfterPack(last, empty, proven)
	}
	end, err := j.findEnd(last, proven)
	if err != nil {
		return err
	}
	if err := j.settle(last, end); err != nil {
		if !j.opt.ReadOnly || !errors.Is(err, backend.ErrCorrupt) {
			return err
		}
		j.damage = errors.Join(j.damage, err)
	}
	last.end.Store(end.offset)
	j.tail.last = end.number
	j.marked = end.marked
	j.sync.init(last.file, end.number)
	if j.opt.ReadOnly {
		return nil
	}
	if err := j.drop(empty); err != nil {
		return err
	}
	return j.confirm(last, end)
}

// openAfterPack opens a journal that ends with a pack, and creates the next segment. It
// is missing if a crash interrupted its creation, or read-only if later files are
// damaged.
func (j *Journal) openAfterPack(last, empty *segment, proven uint64) error {
	number := last.pack.LastCommit
	if proven > number {
		err := last.corrupt(last.end.Load(), fmt.Sprintf("commit %d was durable, but the journal ends with commit %d", proven, number))
		if !j.opt.ReadOnly {
			return err
		}
		j.damage = errors.Join(j.damage, err)
	}
	j.tail.last = number
	if j.opt.ReadOnly {
		s := &segment{name: filepath.Join(j.dir, segmentName(last.last+1))}
		s.init(header{segment: last.last + 1, first: number + 1, store: j.store})
		s.end.Store(headerSize)
		j.segments = append(j.segments, s)
		j.sync.init(nil, number)
		return nil
	}
	if err := j.drop(empty); err != nil {
		return err
	}
	s, err := j.create(last.last+1, number+1)
	if err != nil {
		return err
	}
	j.segments = append(j.segments, s)
	j.sync.init(s.file, number)
	return nil
}

// begin creates the first segment of a new journal.
func (j *Journal) begin() error {
	if j.store = j.opt.Store; j.store == [16]byte{} {
		rand.Read(j.store[:])
	}
	if err := j.opt.FS.MkdirAll(j.dir); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	if err := syncAbove(j.opt.FS, j.dir); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	s, err := j.create(1, 1)
	if err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	j.segments = []*segment{s}
	j.sync.init(s.file, 0)
	return nil
}

// syncAbove makes the names of dir and its parents durable, since any of them may be
// new. Parents that cannot be synced are skipped.
func syncAbove(fsys vfs.FS, dir string) error {
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		err := fsys.SyncDir(parent)
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
			return err
		}
	}
	return nil
}

// tailEnd is the end of the frames of the last segment.
type tailEnd struct {
	offset  int64
	number  uint64 // of the last commit
	durable uint64 // the last commit known to be durable
	marked  uint64 // the last commit, if a mark proves it durable
	// unsure are the ends of the commits after the durable ones.
	unsure []int64
	// sure is the end of the frames known to be durable, or 0 if not even the header
	// is.
	sure int64
	// misplaced is set if a frame follows that does not belong to the next commit.
	misplaced error
}

// findEnd reads the last segment up to the first bytes that are not a frame. If the
// index knows a durable position, reading starts there, unless anything other than
// complete frames follows: then the whole segment is read.
func (j *Journal) findEnd(s *segment, proven uint64) (tailEnd, error) {
	var err error
	if j.opt.ReadOnly {
		err = s.open(j.opt.FS)
	} else if s.file, err = j.opt.FS.OpenRW(s.name); err != nil {
		err = fmt.Errorf("open journal: %w", err)
	}
	if err != nil {
		return tailEnd{}, err
	}
	start := tailEnd{offset: headerSize, number: s.first - 1, durable: max(proven, s.first-1)}
	if at := j.opt.DurableEnd; at.Segment == s.segment && at.Offset > headerSize && at.Offset < s.end.Load() && j.opt.Durable >= s.first {
		end := start
		end.offset, end.number, end.sure = at.Offset, j.opt.Durable, at.Offset
		if err := j.scan(s, &end); err != nil || end.offset == s.end.Load() {
			return end, err
		}
	}
	err = j.scan(s, &start)
	return start, err
}

// scan reads frames from end on and updates end.
func (j *Journal) scan(s *segment, end *tailEnd) error {
	v := &FileSet{j: j, segments: j.segments}
	r := v.NewReader()
	r.ahead = maxRead
	for end.offset < s.end.Load() {
		f, err := r.Frame(Position{Segment: s.segment, Offset: end.offset})
		if errors.Is(err, backend.ErrCorrupt) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.follows(f, end.number); err != nil {
			end.misplaced = err
			return nil
		}
		end.add(f)
	}
	return nil
}

func (e *tailEnd) add(f Frame) {
	e.number, e.offset = f.Number, f.End
	e.durable = max(e.durable, f.Durable)
	if f.Mark {
		e.marked = f.Durable
	} else {
		e.unsure = append(e.unsure, f.End)
	}
	for len(e.unsure) > 0 && e.number-uint64(len(e.unsure)) < e.durable {
		e.sure, e.unsure = e.unsure[0], e.unsure[1:]
	}
}

// confirm cuts the segment at the end of its frames, and makes the frames durable. It
// rewrites and syncs even what seems durable: if a sync failed before the crash, the
// kernel may consider pages clean that the disk does not have.
func (j *Journal) confirm(s *segment, end tailEnd) error {
	if err := s.file.Truncate(end.offset); err != nil {
		return fmt.Errorf("cut %s: %w", s.name, err)
	}
	b := make([]byte, min(end.offset-end.sure, maxRead))
	for at := end.sure; at < end.offset; at += int64(len(b)) {
		b = b[:min(end.offset-at, int64(len(b)))]
		if _, err := s.file.ReadAt(b, at); err != nil {
			return fmt.Errorf("read %s: %w", s.name, err)
		}
		if _, err := s.file.WriteAt(b, at); err != nil {
			return fmt.Errorf("write %s again: %w", s.name, err)
		}
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync journal: %w", err)
	}
	if end.sure > 0 {
		return nil
	}
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	return nil
}

// settle handles the bytes after the last valid frame. They are a torn write unless
// something proves that they were durable: the index, or a later frame. A torn write
// is cut off later; if it contains complete frames, which happens when power loss
// loses earlier bytes, it is saved in a separate file.
func (j *Journal) settle(s *segment, end tailEnd) error {
	if end.durable > end.number {
		return s.corrupt(end.offset, fmt.Sprintf("commit %d was durable, but the journal ends with commit %d", end.durable, end.number))
	}
	if end.misplaced != nil {
		return end.misplaced
	}
	if end.offset == s.end.Load() {
		return nil
	}
	size := s.end.Load() - end.offset
	if zeros, err := allZeros(s.file, end.offset, s.end.Load()); err != nil {
		return fmt.Errorf("read %s: %w", s.name, err)
	} else if zeros {
		return nil // reserved space
	}
	if size > maxTorn {
		return s.corrupt(end.offset, fmt.Sprintf("%d bytes after commit %d are not frames, more than a crash can leave", size, end.number))
	}
	rest := make([]byte, size)
	if _, err := s.file.ReadAt(rest, end.offset); err != nil {
		return fmt.Errorf("read %s: %w", s.name, err)
	}
	later := framesAmong(rest, s.crc, end.number)
	if later.durable > end.number {
		return s.corrupt(end.offset, fmt.Sprintf("commit %d is damaged, and the later commit %d proves that it was durable", end.number+1, later.number))
	}
	if j.opt.ReadOnly {
		return nil
	}
	if later.found {
		kept := fmt.Sprintf("%s.%d.cut", s.name, end.offset)
		if err := keepBytes(j.opt.FS, kept, rest); err != nil {
			return fmt.Errorf("save the bytes cut from %s: %w", s.name, err)
		}
		j.opt.Logger.Warn("unsynced bytes out of order are set aside", "file", s.name, "commit", end.number, "bytes", len(rest), "to", kept)
	} else {
		j.opt.Logger.Warn("torn write is cut off", "file", s.name, "commit", end.number, "bytes", len(rest))
	}
	return nil
}

// maxTorn is the largest torn write that a crash can leave: a commit, and other writes
// in the sync interval.
const maxTorn = 1<<30 + 256<<20

// allZeros reports whether a part of a file is all zeros.
func allZeros(f vfs.File, from, to int64) (bool, error) {
	b := make([]byte, min(maxRead, to-from))
	zeros := make([]byte, len(b))
	for ; from < to; from += int64(len(b)) {
		b = b[:min(int64(len(b)), to-from)]
		if _, err := f.ReadAt(b, from); err != nil {
			return false, err
		}
		if !bytes.Equal(b, zeros[:len(b)]) {
			return false, nil
		}
	}
	return true, nil
}

func keepBytes(fsys vfs.FS, name string, b []byte) error {
	f, err := fsys.Create(name)
	if errors.Is(err, fs.ErrExist) {
		if err = fsys.Remove(name); err == nil {
			f, err = fsys.Create(name)
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}
