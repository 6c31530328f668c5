package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// SegmentInfo describes a file of the journal.
type SegmentInfo struct {
	// First and Last are the numbers of the segments in the file.
	First, Last uint32
	// Commit and LastCommit are its first and last commit; LastCommit is Commit-1 if
	// it has none.
	Commit, LastCommit uint64
	Bytes              int64
	Packed, Sealed     bool
	Dense              bool // a dense pack
	Name               string
}

// Segments describes the journal's files in order.
func (j *Journal) Segments() []SegmentInfo {
	last := j.Last()
	j.segmentsMu.RLock()
	defer j.segmentsMu.RUnlock()
	var out []SegmentInfo
	for i, s := range j.segments {
		info := SegmentInfo{
			First: s.segment, Last: s.last, Commit: s.first, LastCommit: last, Bytes: s.end.Load(), Packed: s.pack != nil, Name: s.name,
			Sealed: i < len(j.segments)-1, Dense: s.pack != nil && s.pack.Dense,
		}
		if info.Sealed {
			info.LastCommit = j.segments[i+1].first - 1
		}
		out = append(out, info)
	}
	return out
}

// Collected reports whether a collection removed records.
func (j *Journal) Collected() bool {
	return slices.ContainsFunc(j.current.Load().segments, func(s *segment) bool { return s.pack != nil && s.pack.Collected })
}

// Seal ends the last segment, if it has commits, so that all commits so far can be
// rewritten.
func (j *Journal) Seal() error {
	j.tail.Lock()
	defer j.tail.Unlock()
	if err := j.writable(); err != nil {
		return err
	}
	s := j.lastSegment()
	if j.tail.last < s.first {
		return nil
	}
	if j.tail.torn {
		if err := j.clear(s); err != nil {
			return err
		}
	}
	if _, err := j.roll(s); err != nil {
		return fmt.Errorf("begin journal segment: %w", err)
	}
	return nil
}

// RewriteOptions configure a rewrite.
type RewriteOptions struct {
	// Filter filters each commit; nil keeps everything. With a filter, the pack is marked as
	// collected.
	Filter pack.Edit
	// Prepared, if not nil, is called when the new file is complete and synced under
	// a temporary name, before it takes effect. An error cancels the rewrite.
	Prepared func() error
	// Dense makes the pack smaller, but slower to write and read. A dense pack stays
	// dense.
	Dense bool
	// Quick takes less time to write a pack, which is a little larger.
	Quick bool
	// Unlisted omits the lookup tables of the pack.
	Unlisted bool
	// Yield, if not nil, is called after every few microseconds of work.
	Yield func()
	// Progress, if not nil, is called with the bytes of frames done and the total.
	Progress func(done, total int64)
}

// RewriteReport is the result of a rewrite.
type RewriteReport struct {
	Before, After int64 // bytes of the files
	Commits       uint64
}

// Rewrite replaces the files of the segments from first to last, all sealed, by one
// pack. Positions stay valid. Nothing changes until the pack is durable, and a
// failed or canceled rewrite leaves nothing; older file sets continue to read the old
// files, which are removed when the last of these file sets is released. Rewrites run
// one at a time.
func (j *Journal) Rewrite(ctx context.Context, first, last uint32, o RewriteOptions) (RewriteReport, error) {
	j.rewriting.Lock()
	defer j.rewriting.Unlock()
	var report RewriteReport
	if j.opt.ReadOnly {
		return report, fmt.Errorf("journal: %w", backend.ErrReadOnly)
	}
	v := j.FileSet()
	defer v.Release()
	old, err := v.sealed(first, last)
	if err != nil {
		return report, err
	}
	for _, s := range old {
		report.Before += s.end.Load()
	}
	generation := 0
	for _, s := range old {
		if s.pack != nil {
			generation = max(generation, s.generation+1)
		}
	}
	name := filepath.Join(j.dir, layout.Name(first, last, generation))
	header := layout.Header{First: first, Last: last, FirstCommit: old[0].first, Store: j.store, Dense: o.Dense, Collected: o.Filter != nil}
	if _, err := rand.Read(header.Salt[:]); err != nil {
		return report, fmt.Errorf("rewrite segments %d to %d: %w", first, last, err)
	}
	for _, s := range old {
		if s.pack != nil {
			header.Dense = header.Dense || s.pack.Dense
			header.Collected = header.Collected || s.pack.Collected
		}
	}
	tmp := name + layout.Unfinished
	if err := j.newFile(tmp, func(f vfs.File) (err error) {
		report.Commits, report.After, err = j.writePack(ctx, v, f, tmp, header, o)
		return err
	}); err != nil {
		return report, fmt.Errorf("rewrite segments %d to %d: %w", first, last, err)
	}
	if err := j.replace(old, name, o.Prepared); err != nil {
		return report, fmt.Errorf("rewrite segments %d to %d: %w", first, last, err)
	}
	return report, nil
}

// Spare returns the size of the lookup tables that Unlist removes.
func (j *Journal) Spare() (bytes int64) {
	v := j.FileSet()
	defer v.Release()
	for _, s := range v.segments {
		if s.pack != nil {
			bytes += s.pack.Spare()
		}
	}
	return bytes
}

// Unlist writes packs again without their lookup tables, if that makes them clearly smaller. Nothing may rely on the tables.
// Like rewrites, it runs alone, and leaves a pack as it is or complete without tables.
func (j *Journal) Unlist(ctx context.Context) error {
	j.rewriting.Lock()
	defer j.rewriting.Unlock()
	v := j.FileSet()
	defer v.Release()
	for _, s := range v.segments {
		if s.pack == nil || s.pack.Spare() == 0 {
			continue
		}
		name := filepath.Join(j.dir, layout.Name(s.segment, s.last, s.generation+1))
		err := j.newFile(name+layout.Unfinished, func(f vfs.File) error {
			_, err := s.pack.Unlist(ctx, f)
			return err
		})
		if err == nil {
			err = j.replace([]*segment{s}, name, nil)
		}
		if err != nil {
			return fmt.Errorf("remove the lookup tables of %s: %w", filepath.Base(s.name), err)
		}
	}
	return nil
}

// sealed returns the files that contain exactly the given segments.
func (v *FileSet) sealed(first, last uint32) ([]*segment, error) {
	from := slices.IndexFunc(v.segments, func(s *segment) bool { return s.segment == first })
	to := slices.IndexFunc(v.segments, func(s *segment) bool { return s.last == last })
	if from < 0 || to < from {
		return nil, fmt.Errorf("segments %d to %d are not whole files of the journal: %w", first, last, backend.ErrInvalid)
	}
	if to == len(v.segments)-1 {
		return nil, fmt.Errorf("segment %d is still written to: %w", last, backend.ErrInvalid)
	}
	return v.segments[from : to+1], nil
}

// newFile writes a file under a temporary name, and syncs it. After an error it leaves nothing.
func (j *Journal) newFile(tmp string, write func(f vfs.File) error) (err error) {
	if err := j.opt.FS.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := j.opt.FS.Create(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			if removeErr := j.opt.FS.Remove(tmp); removeErr != nil {
				j.opt.Logger.Warn("unfinished pack is not removed", "file", tmp, "err", removeErr)
			}
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	return f.Sync()
}

// writePack writes the pack of some segments, named for messages, reads it back and compares it.
func (j *Journal) writePack(ctx context.Context, v *FileSet, f vfs.File, name string, h layout.Header, o RewriteOptions) (commits uint64, size int64, err error) {
	w := pack.NewWriter(f, h, o.Filter)
	defer w.Close()
	w.Unlisted, w.Quick = o.Unlisted, o.Quick
	w.Stop = func() error { return context.Cause(ctx) }
	if o.Yield != nil {
		w.Yield = o.Yield
	}
	next := v.find(h.Last + 1)
	total := j.SizeFrom(Position{Segment: h.First}) - j.SizeFrom(Position{Segment: h.Last + 1})
	var done int64
	for frame, err := range v.Frames(Position{Segment: h.First}) {
		switch {
		case err != nil:
			return 0, 0, err
		case ctx.Err() != nil:
			return 0, 0, context.Cause(ctx)
		}
		if frame.Position.Segment > h.Last {
			break
		}
		done += frame.End - frame.Position.Offset
		if o.Progress != nil {
			o.Progress(done, max(total, done))
		}
		if frame.Mark {
			continue
		}
		commits++
		if err := w.Add(pack.Frame{
			Segment: frame.Position.Segment, Start: frame.Position.Offset, End: frame.End, Number: frame.Number, ID: frame.ID,
			Payload: frame.Payload, PayloadOffset: frame.PayloadOffset, Offsets: frame.Offsets,
		}); err != nil {
			return 0, 0, err
		}
	}
	if want := next.first - h.FirstCommit; commits != want {
		return 0, 0, fmt.Errorf("%d commits of %d", commits, want)
	}
	if size, err = w.Finish(); err != nil {
		return 0, 0, err
	}
	return commits, size, w.Prove(ctx, f, name)
}

// replace replaces the old files by the new pack.
func (j *Journal) replace(old []*segment, name string, prepared func() error) (err error) {
	tmp := name + layout.Unfinished
	renamed := false
	defer func() {
		if err == nil {
			return
		}
		left := tmp
		if renamed {
			left = name
		}
		if removeErr := j.opt.FS.Remove(left); removeErr != nil {
			j.opt.Logger.Warn("unused pack is not removed", "file", left, "err", removeErr)
		}
	}()
	s, err := j.openPack(tmp)
	if err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	if prepared != nil {
		if err := prepared(); err != nil {
			return err
		}
	}
	if err := j.opt.FS.Rename(tmp, name); err != nil {
		return err
	}
	renamed = true
	if err := j.opt.FS.SyncDir(j.dir); err != nil {
		return err
	}
	if s, err = j.openPack(name); err != nil {
		return err
	}
	j.segmentsMu.Lock()
	at := slices.Index(j.segments, old[0])
	for _, o := range old {
		o.doomed = true
	}
	j.doomed = append(j.doomed, old...)
	j.use(slices.Concat(j.segments[:at], []*segment{s}, j.segments[at+len(old):]))
	j.segmentsMu.Unlock()
	j.releaseOld()
	return nil
}

// openPack opens a pack as a segment.
func (j *Journal) openPack(name string) (*segment, error) {
	s := &segment{name: name}
	if err := s.open(j.opt.FS); err != nil {
		return nil, err
	}
	size, err := s.file.Size()
	if err == nil {
		s.pack, err = pack.Open(s.file, size, name, j.cache)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	s.header = header{segment: s.pack.First, first: s.pack.FirstCommit, store: s.pack.Store}
	s.last = s.pack.Last
	s.end.Store(size)
	_, _, s.generation, _ = layout.ParseName(filepath.Base(name))
	return s, nil
}
