package journal

import (
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// FileSet returns the current files. It does not block.
func (j *Journal) FileSet() *FileSet {
	for {
		v := j.current.Load()
		for n := v.refs.Load(); n > 0; n = v.refs.Load() {
			if v.refs.CompareAndSwap(n, n+1) {
				return v
			}
		}
	}
}

// Again returns the file set once more, for another user, who releases it.
func (v *FileSet) Again() *FileSet {
	v.refs.Add(1)
	return v
}

// Release releases the files. It is called once for each file set taken.
func (v *FileSet) Release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	for _, s := range v.segments {
		if s.uses.Add(-1) == 0 {
			v.j.retire(s)
		}
	}
}

// Current reports whether no file was replaced since the file set was taken.
func (v *FileSet) Current() bool {
	now := v.j.current.Load()
	return now == v || len(now.segments) >= len(v.segments) && slices.Equal(now.segments[:len(v.segments)], v.segments)
}

// use makes a list of segments the current one. The caller holds segmentsMu.
func (j *Journal) use(segments []*segment) {
	next := &FileSet{j: j, segments: segments}
	next.refs.Store(1)
	for _, s := range segments {
		s.uses.Add(1)
	}
	j.segments = segments
	if old := j.current.Swap(next); old != nil {
		j.replaced = append(j.replaced, old)
	}
}

// releaseOld releases the file sets that use replaced. The caller does not hold
// segmentsMu.
func (j *Journal) releaseOld() {
	j.segmentsMu.Lock()
	old := j.replaced
	j.replaced = nil
	j.segmentsMu.Unlock()
	for _, v := range old {
		v.Release()
	}
}

// retire closes a segment without readers, and removes its file if it was
// replaced.
func (j *Journal) retire(s *segment) {
	j.segmentsMu.Lock()
	_ = s.close() // it was only read
	j.doomed = slices.DeleteFunc(j.doomed, func(d *segment) bool { return d == s })
	doomed := s.doomed && !j.filesGone
	j.segmentsMu.Unlock()
	if s.pack != nil {
		s.pack.Forget()
	}
	if !doomed {
		return
	}
	// If this fails or is lost, opening removes it.
	if err := j.opt.FS.Remove(s.name); err != nil {
		j.opt.Logger.Warn("rewritten file is not removed", "file", s.name, "err", err)
	} else if err := j.opt.FS.SyncDir(j.dir); err != nil {
		j.opt.Logger.Warn("rewritten file is not removed", "file", s.name, "err", err)
	}
}

// find returns the file that contains a segment, or nil.
func (v *FileSet) find(number uint32) *segment { return findSegment(v.segments, number) }

func findSegment(segments []*segment, number uint32) *segment {
	i, _ := slices.BinarySearchFunc(segments, number, func(s *segment, n uint32) int { return int(int64(s.last) - int64(n)) })
	if i == len(segments) || segments[i].segment > number {
		return nil
	}
	return segments[i]
}

// at returns the segment with its file open, and the end of its frames.
func (v *FileSet) at(number uint32) (*segment, vfs.File, int64, error) {
	s := v.find(number)
	if s == nil {
		return nil, nil, 0, fmt.Errorf("journal segment %d: %w", number, backend.ErrNotFound)
	}
	j := v.j
	j.segmentsMu.RLock()
	closed, file, end := j.filesGone, s.file, s.end.Load()
	j.segmentsMu.RUnlock()
	if closed {
		return nil, nil, 0, fmt.Errorf("journal: %w", backend.ErrClosed)
	}
	if file != nil {
		return s, file, end, nil
	}
	j.segmentsMu.Lock()
	defer j.segmentsMu.Unlock()
	if j.filesGone {
		return nil, nil, 0, fmt.Errorf("journal: %w", backend.ErrClosed)
	}
	if err := s.open(j.opt.FS); err != nil {
		return nil, nil, 0, err
	}
	return s, s.file, s.end.Load(), nil
}
