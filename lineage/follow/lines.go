package follow

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// readFrom reads the lines of an open file up to an offset.
func (r *run) readFrom(ctx context.Context, f *file, opened *os.File, now stamp, end int64) error {
	fresh := false
	err := r.readLines(ctx, f, opened, now, end, fresh)
	if errors.Is(err, importer.ErrStale) {
		fresh = true
		err = r.readLines(ctx, f, opened, now, end, fresh)
	}
	if errors.Is(err, archive.ErrCannotGrow) {
		return r.importFile(ctx, f)
	}
	return err
}

// lineWait is how long a file must be unchanged before an incomplete last line is read.
const lineWait = 10 * time.Second

// end returns the offset up to which a file of lines is read now: the end of the last complete line.
func (r *run) end(f *file, opened *os.File, now stamp) (int64, error) {
	end, err := lastLineEnd(opened, now.size)
	if err != nil || end == now.size {
		f.partial = time.Time{}
		return end, err
	}
	if f.partial.IsZero() || f.partialSize != now.size {
		f.partial, f.partialSize = r.clock.Now(), now.size
		if r.options.Once {
			f.partial = time.Unix(0, now.modified) // no later change is known
		}
	}
	if at := f.partial.Add(lineWait); r.clock.Now().Before(at) {
		r.waiting[f] = at
		return end, nil
	}
	return now.size, nil
}

// lastLineEnd returns the offset after the last newline in the first size bytes.
func lastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, 64<<10))
	for end := size; end > 0; {
		part := buf[:min(end, int64(len(buf)))]
		if _, err := r.ReadAt(part, end-int64(len(part))); err != nil {
			return 0, fmt.Errorf("find the last line: %w", err)
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] == '\n' {
				return end - int64(len(part)) + int64(i) + 1, nil
			}
		}
		end -= int64(len(part))
	}
	return 0, nil
}

// readLines reads the lines of a file from the position of its reader up to an offset. With fresh, it ignores what
// the store has of the file.
func (r *run) readLines(ctx context.Context, f *file, opened *os.File, now stamp, end int64, fresh bool) (err error) {
	continues, err := f.continues(opened, now, end)
	if err != nil {
		return err
	}
	if continues && f.reader.at == end { // nothing but an incomplete line was added
		f.state.Size, f.state.Modified = now.size, r.settled(f, now)
		r.changed(f)
		return nil
	}
	if !continues {
		if err := r.closeReader(ctx, f); err != nil {
			return err
		}
		if wait, err := r.openReader(ctx, f, opened, now, end, fresh); wait || err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			r.dropReader(f)
		}
	}()
	reader := f.reader
	report, err := reader.growing.Read(ctx, io.NewSectionReader(opened, reader.at, end-reader.at))
	if errors.Is(err, importer.ErrDeleted) {
		reader.taking.lost()
		err = nil
	}
	if err = errors.Join(reader.taking.outcome(err), reader.record.err); err != nil {
		return err
	}
	reader.at, reader.modified, reader.used = end, now.modified, r.clock.Now()
	reader.rounds++
	if reader.mark, err = markOf(opened, end); err != nil {
		return err
	}
	whole, err := endsLine(opened, end) // otherwise the line may grow, and the file no longer begins with what was read
	if err != nil {
		return err
	}
	r.markRead(f, reader.taking, &report, now, end)
	recent := reader.used.Sub(time.Unix(0, now.modified)) < readerTime
	switch {
	case f.state.LeftOut != "":
		r.dropReader(f)
		return nil
	case r.options.Once, !recent, !whole:
		return r.closeReader(ctx, f)
	}
	r.active = append(slices.DeleteFunc(r.active, func(other *file) bool { return other == f }), f)
	return r.closeReaders(ctx, maxReaders)
}

// continues reports whether a file has grown since its reader read it, or has only a new incomplete line.
func (f *file) continues(opened *os.File, now stamp, end int64) (bool, error) {
	reader := f.reader
	if reader == nil || end < reader.at || now.size <= f.state.Size && now.modified != reader.modified {
		return false, nil
	}
	mark, err := markOf(opened, reader.at)
	return mark == reader.mark, err
}

// endsLine reports whether the byte before an offset ends a line.
func endsLine(r io.ReaderAt, end int64) (bool, error) {
	var last [1]byte
	_, err := r.ReadAt(last[:], end-1)
	return last[0] == '\n', err
}

// openReader opens a reader at the start of a file, or where the store's record of it ends. It reports whether the file has to wait.
func (r *run) openReader(ctx context.Context, f *file, opened *os.File, now stamp, end int64, fresh bool) (wait bool, err error) {
	t := r.takingOf(ctx, f)
	t.alone = true
	name := filepath.Base(RecordedPath(f.path))
	if len(r.options.NotProjects) > 0 && r.waitsForProject(f, t, archive.Stream(name, io.NewSectionReader(opened, 0, end)), now) {
		return true, nil
	}
	found, sum, err := r.recorded(ctx, f, opened, now)
	if err != nil {
		return false, err
	}
	var known *Source // found, if reading continues after it
	switch {
	case sum == nil || fresh || f.begunAgain: // messages of a file that begins again may be after others now
	case found.Recorded.Bytes > end: // another process is ahead
		r.waiting[f] = r.clock.Now().Add(lineWait)
		return true, nil
	default:
		whole, err := endsLine(opened, found.Recorded.Bytes)
		if err != nil {
			return false, err
		}
		if whole {
			known = found
		}
	}
	var spans [][]lineage.SpanRef // of the lines of known
	if known == nil {
		sum = sha256.New()
	} else if spans, err = known.Spans(ctx); err != nil {
		return false, err
	}
	begun := &reader{taking: t, fresh: known == nil}
	o := r.archiveOptions(f, t)
	o.Path = f.path
	o.Placed = func(lines []importer.Line) {
		session := begun.growing.Session()
		begun.record.add(ctx, session, t.branchOf(session), lines)
	}
	begun.growing = importer.Grow(r.store, name, o)
	if known != nil {
		begun.growing.Known(known.Recorded.Lines, func(line int64) []lineage.SpanRef { return spans[line-1] })
	}
	begun.record = record(r.store, r.options.Machine, r.sourceOf(f), known, sum)
	begun.record.seen = true
	if known == nil && found != nil {
		begun.record.was = found.tip
	}
	f.reader = begun
	return false, nil
}

// waitsForProject finds the project of a file. It reports whether the file has to wait until its project is known, or until it
// changes, if it has neither a project nor a message.
func (r *run) waitsForProject(f *file, t *taking, source archive.Source, now stamp) bool {
	hasMessage := false
	for c, err := range archive.Read(t.ctx, source, archive.ReadOptions{Format: f.format(), Formats: r.options.Formats, Limits: r.options.Limits}) {
		if err == nil {
			if t.known = projectOf(c); t.known != "" {
				return false
			}
			hasMessage = hasMessage || c.Says()
		}
	}
	known := time.Unix(0, now.modified).Add(projectWait)
	switch {
	case r.clock.Now().Before(known):
		r.waiting[f] = known
	case hasMessage:
		return false
	default:
		f.undecided = now
	}
	return true
}

// projectWait is how long a file without a known project waits, if some projects are left out.
const projectWait = time.Minute

// markSize is the number of bytes before an offset that are compared when a file has grown.
const markSize = 4 << 10

// markOf returns a hash of the beginning of a file and of the bytes before an offset.
func markOf(r io.ReaderAt, end int64) (mark [sha256.Size]byte, err error) {
	h := sha256.New()
	n := min(end, markSize)
	for _, at := range []int64{0, end - n} {
		if _, err := io.Copy(h, io.NewSectionReader(r, at, n)); err != nil {
			return mark, err
		}
	}
	h.Sum(mark[:0])
	return mark, nil
}
