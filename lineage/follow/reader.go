package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
)

// reader reads a file of lines while it grows. After an error, or when the file does not continue what
// was read, another one reads the file from its start.
type reader struct {
	growing *archive.Growing
	taking  *taking
	// at is the offset up to which the file was read: lines with these bytes, of which mark is a hash of
	// some.
	at     int64
	lines  int64
	hash   hash.Hash
	mark   [sha256.Size]byte
	rounds int
	// endsLine is set if the last byte that was read ends a line.
	endsLine bool
	used     time.Time
}

// The readers that were used last stay open, maxReaders of them, each for readerTime.
const (
	maxReaders = 64
	readerTime = 10 * time.Minute
)

// closeReader closes the reader of a file.
func (r *run) closeReader(f *file) {
	if f.reader == nil {
		return
	}
	f.reader.growing.Close()
	f.reader = nil
	r.active = slices.DeleteFunc(r.active, func(is *file) bool { return is == f })
}

// closeReaders closes the readers that were not used for a time, and those beyond a number.
func (r *run) closeReaders(most int) {
	for len(r.active) > most || len(r.active) > 0 && r.clock.Now().Sub(r.active[0].reader.used) >= readerTime {
		r.closeReader(r.active[0])
	}
}

// readLines reads the lines of a file from where its reader is, up to an offset.
func (r *run) readLines(ctx context.Context, f *file, opened *os.File, now stamp, end int64) (err error) {
	continues, err := f.continues(opened, now, end)
	if err != nil {
		return err
	}
	if continues && f.reader.at == end {
		f.state.Size, f.state.Modified = now.size, now.modified // only an incomplete line was added
		return nil
	}
	if !continues {
		r.closeReader(f)
		if wait, err := r.openReader(ctx, f, opened, now, end); wait || err != nil {
			return err
		}
	}
	is := f.reader
	defer func() {
		if err != nil {
			r.closeReader(f)
		}
	}()
	report, err := is.growing.Read(ctx, io.TeeReader(io.NewSectionReader(opened, is.at, end-is.at), is))
	if errors.Is(err, archive.ErrDeleted) {
		is.taking.lost()
		err = nil
	}
	if err = is.taking.outcome(err); err != nil {
		return err
	}
	is.at, is.used = end, r.clock.Now()
	is.rounds++
	if is.mark, err = markOf(opened, end); err != nil {
		return err
	}
	r.took(f, is.taking, &report, now, end)
	// A last line without its end may grow: then the file does not continue what was read.
	whole := end < now.size || is.endsLine
	if recent := is.used.Sub(time.Unix(0, now.modified)) < readerTime; r.options.Once || !recent || !whole || f.state.LeftOut != "" {
		r.closeReader(f)
		return nil
	}
	r.active = append(slices.DeleteFunc(r.active, func(other *file) bool { return other == f }), f)
	r.closeReaders(maxReaders)
	return nil
}

// continues reports whether a file has grown since its reader read it, or has only a new incomplete
// line.
func (f *file) continues(opened *os.File, now stamp, end int64) (bool, error) {
	is := f.reader
	if is == nil || end < is.at || now.size <= f.state.Size && now.modified != f.state.Modified {
		return false, nil
	}
	mark, err := markOf(opened, is.at)
	return mark == is.mark, err
}

// openReader opens a reader at the start of a file. It reports whether the file has to wait until its
// project is known.
func (r *run) openReader(ctx context.Context, f *file, opened *os.File, now stamp, end int64) (wait bool, err error) {
	t := &taking{ctx: ctx, run: r, alone: true}
	name := filepath.Base(f.path)
	if len(r.options.NotProjects) > 0 {
		source := archive.Stream(name, io.NewSectionReader(opened, 0, end))
		for c, err := range archive.Read(ctx, source, archive.Options{Format: f.folder.agent.Format, Formats: r.options.Formats, Limits: r.options.Limits}) {
			if err == nil {
				if t.known = projectOf(c); t.known != "" {
					break
				}
			}
		}
		known := time.Unix(0, now.modified).Add(projectWait)
		if t.known == "" && r.clock.Now().Before(known) {
			r.waiting[f] = known
			return true, nil
		}
	}
	f.reader = &reader{growing: archive.Grow(r.store, name, r.archiveOptions(f, t)), taking: t, hash: sha256.New()}
	return false, nil
}

// projectWait is how long a file waits that does not say its project yet, if some are left out.
const projectWait = time.Minute

// Write counts and hashes the lines that are read.
func (r *reader) Write(p []byte) (int, error) {
	r.lines += int64(bytes.Count(p, []byte{'\n'}))
	r.endsLine = len(p) > 0 && p[len(p)-1] == '\n'
	return r.hash.Write(p)
}

// markSize is how much of a file before an offset is compared when the file has grown.
const markSize = 4 << 10

// markOf returns a hash of the beginning of a file and of what is before an offset.
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
