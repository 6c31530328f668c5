package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// loadSegments reads the headers. A last segment without frames, as a crash or a
// full disk leaves it while it is being made, is set apart.
func (j *Journal) loadSegments() (empty *segment, err error) {
	names, err := j.opt.FS.List(j.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	for _, name := range names {
		if number, ok := segmentNumber(name); ok {
			j.segments = append(j.segments, &segment{
				name: filepath.Join(j.dir, name), header: header{segment: number},
			})
		}
	}
	for i, s := range j.segments {
		err := j.loadHeader(s, i)
		switch {
		case errors.Is(err, errNoFrames):
			j.segments = j.segments[:i]
			return s, nil
		case errors.Is(err, backend.ErrCorrupt) && j.opt.ReadOnly && i > 0:
			j.damage = err
			j.segments = j.segments[:i]
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	return nil, nil
}

var errNoFrames = errors.New("segment without frames")

// loadHeader reads the header of the i-th segment, which has the one of those
// before it.
func (j *Journal) loadHeader(s *segment, i int) error {
	b, size, err := readHeader(j.opt.FS, s.name)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	h, err := decodeHeader(b)
	if errors.Is(err, backend.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if empty := i == len(j.segments)-1 && size <= headerSize; empty && (err != nil || i > 0) {
		s.first = h.first
		return errNoFrames
	}
	switch {
	case err != nil:
		return s.corrupt(0, err.Error())
	case h.segment != s.segment:
		return s.corrupt(0, fmt.Sprintf("holds segment %d", h.segment))
	case i == 0 && (h.segment != 1 || h.first != 1):
		return s.corrupt(0, fmt.Sprintf("segment %d begins with commit %d, and what came before is missing", h.segment, h.first))
	case i > 0 && h.store != j.store:
		return s.corrupt(0, "belongs to another store")
	}
	if i > 0 {
		if before := j.segments[i-1]; h.segment != before.segment+1 || h.first < before.first {
			return s.corrupt(0, fmt.Sprintf("segment %d from commit %d does not follow segment %d from commit %d", h.segment, h.first, before.segment, before.first))
		}
	}
	j.store = h.store
	s.init(h)
	s.end = size
	return nil
}

// readHeader returns what there is of a segment's header, and the file's size.
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

// drop removes a segment without frames, if there is one.
func (j *Journal) drop(empty *segment) error {
	if empty == nil {
		return nil
	}
	j.opt.Log(fmt.Sprintf("%s holds no commits: removed", empty.name))
	if err := j.opt.FS.Remove(empty.name); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return fmt.Errorf("remove empty segment: %w", err)
	}
	return nil
}
