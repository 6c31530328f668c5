package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// loadSegments reads the headers. It returns separately a last segment without
// frames, which remains if a crash or a full disk interrupts its creation.
func (j *Journal) loadSegments() (empty *segment, err error) {
	names, err := j.opt.FS.List(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	packs, err := j.loadPacks(names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if number, ok := segmentNumber(name); ok && findSegment(packs, number) == nil {
			j.segments = append(j.segments, &segment{
				name: filepath.Join(j.dir, name), header: header{segment: number}, last: number,
			})
		}
	}
	j.segments = append(j.segments, packs...)
	slices.SortFunc(j.segments, func(a, b *segment) int { return cmp.Compare(a.segment, b.segment) })
	if j.damage != nil && (len(j.segments) == 0 || j.segments[0].segment > 1) {
		for _, s := range packs {
			s.close()
		}
		return nil, j.damage // it is all that is before the others
	}
	for i, s := range j.segments {
		err := j.loadHeader(s, i)
		switch {
		case errors.Is(err, errNoFrames):
			j.segments = j.segments[:i]
			return s, nil
		case errors.Is(err, backend.ErrCorrupt) && j.opt.ReadOnly && i > 0:
			j.damage, j.unreadable = err, true
			for _, s := range j.segments[i:] {
				s.close()
			}
			j.segments = j.segments[:i]
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, nil
}

// loadPacks opens the current packs. It removes unfinished packs and the files
// that a pack replaces, which a crash left.
func (j *Journal) loadPacks(names []string) (packs []*segment, err error) {
	defer func() {
		if err != nil {
			for _, s := range packs {
				s.close()
			}
			packs = nil
		}
	}()
	found, unneeded := packsIn(names)
	for _, c := range found {
		if n := len(packs); n > 0 && c.first <= packs[n-1].last {
			if c.last > packs[n-1].last {
				return packs, &backend.CorruptError{File: filepath.Join(j.dir, c.name), What: "overlaps with " + packs[n-1].name}
			}
			unneeded = append(unneeded, c.name)
			continue
		}
		s, err := j.openNamed(c)
		if errors.Is(err, backend.ErrCorrupt) && j.opt.ReadOnly {
			j.damage, j.unreadable = err, true // everything before it can be read
			break
		}
		if err != nil {
			return packs, err
		}
		packs = append(packs, s)
	}
	for _, name := range names {
		if number, ok := segmentNumber(name); ok && findSegment(packs, number) != nil {
			unneeded = append(unneeded, name)
		}
	}
	return packs, j.clearAway(unneeded)
}

// packName is the name of a pack, and what it states.
type packName struct {
	name        string
	first, last uint32 // segments
	generation  int
}

// packsIn returns the packs among the files of a journal, and the unfinished ones. A pack contains its sources, so one comes
// before those that it may replace: the widest and newest first.
func packsIn(names []string) (packs []packName, unfinished []string) {
	for _, name := range names {
		if strings.HasSuffix(name, layout.Suffix+layout.Unfinished) {
			unfinished = append(unfinished, name)
		} else if first, last, generation, ok := layout.ParseName(name); ok {
			packs = append(packs, packName{name, first, last, generation})
		}
	}
	slices.SortFunc(packs, func(a, b packName) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last), cmp.Compare(b.generation, a.generation))
	})
	return packs, unfinished
}

// openNamed opens a pack, and checks that it has the segments that its name states.
func (j *Journal) openNamed(p packName) (*segment, error) {
	s, err := j.openPack(filepath.Join(j.dir, p.name))
	if err == nil && (s.segment != p.first || s.last != p.last) {
		s.close()
		return nil, &backend.CorruptError{File: s.name, What: fmt.Sprintf("holds segments %d to %d", s.segment, s.last)}
	}
	return s, err
}

// clearAway removes unneeded files.
func (j *Journal) clearAway(names []string) error {
	if j.opt.ReadOnly || len(names) == 0 {
		return nil
	}
	// Their replacements must be durable first.
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	for _, name := range names {
		if err := j.opt.FS.Remove(filepath.Join(j.dir, name)); err != nil {
			return fmt.Errorf("remove a rewritten file: %w", err)
		}
		j.opt.Logger.Info("file left by a rewrite is removed", "file", name)
	}
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return fmt.Errorf("remove a rewritten file: %w", err)
	}
	return nil
}

var errNoFrames = errors.New("segment without frames")

// loadHeader reads the header of the i-th segment. Those before it have been
// read.
func (j *Journal) loadHeader(s *segment, i int) error {
	if s.pack != nil {
		return j.place(s, s.header, i)
	}
	b, size, err := readHeader(j.opt.FS, s.name)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	h, err := decodeHeader(b)
	if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if size > maxSegment {
		return s.corrupt(0, fmt.Sprintf("has %d bytes, more than a segment can have", size))
	}
	// After a pack an empty segment is normal: sealing created it.
	usual := i > 0 && j.segments[i-1].pack != nil && size == headerSize && err == nil
	if empty := i == len(j.segments)-1 && size <= headerSize; empty && (err != nil || i > 0) && !usual {
		s.first = h.first
		return errNoFrames
	}
	switch {
	case err != nil:
		return s.corrupt(0, err.Error())
	case h.segment != s.segment:
		return s.corrupt(0, fmt.Sprintf("holds segment %d", h.segment))
	}
	if err := j.place(s, h, i); err != nil {
		return err
	}
	s.init(h)
	s.end.Store(size)
	return nil
}

// place checks that a file with the given header follows those before it.
func (j *Journal) place(s *segment, h header, i int) error {
	switch {
	case i == 0 && (h.segment != 1 || h.first != 1):
		return s.corrupt(0, fmt.Sprintf("segment %d begins with commit %d, and the files before it are missing", h.segment, h.first))
	case i > 0 && h.store != j.store:
		return s.corrupt(0, "belongs to another store")
	}
	if i > 0 {
		before := j.segments[i-1]
		if h.segment > before.last+1 {
			return s.corrupt(0, fmt.Sprintf("the segments before it are missing from %d on, with the commits up to %d", before.last+1, h.first-1))
		}
		if h.segment != before.last+1 || h.first < before.first || before.pack != nil && h.first != before.pack.LastCommit+1 {
			return s.corrupt(0, fmt.Sprintf("segment %d from commit %d does not follow segment %d from commit %d", h.segment, h.first, before.last, before.first))
		}
	}
	j.store = h.store
	return nil
}

// readHeader returns the existing bytes of a segment's header, and the file's
// size.
func readHeader(fsys vfs.FS, name string) (b []byte, size int64, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if size, err = f.Size(); err != nil {
		return nil, 0, err
	}
	b = make([]byte, min(size, headerSize))
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return b, size, nil
}

// drop removes a segment without frames, if any.
func (j *Journal) drop(empty *segment) error {
	if empty == nil {
		return nil
	}
	j.opt.Logger.Info("segment without commits is removed", "file", empty.name)
	if err := j.opt.FS.Remove(empty.name); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	return nil
}
