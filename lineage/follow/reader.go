package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// reader reads a file of lines while it grows. After an error, or if the file no longer begins with what was read, a
// new reader reads the file from its start.
type reader struct {
	growing *importer.Growing
	taking  *taking
	// record records the lines, so that the file can be given back byte for byte.
	record *recorder
	// at is the offset up to which the file was read. lines hashes these bytes, and mark some of them.
	at       int64
	mark     [sha256.Size]byte
	modified int64 // the file's time then
	rounds   int
	fresh    bool // nothing of the file was known
	used     time.Time
}

// The most recently used readers stay open: at most maxReaders, each for at most readerTime.
const (
	maxReaders = 64
	readerTime = 10 * time.Minute
)

// closeReader closes the reader of a file, and keeps what it recorded.
func (r *run) closeReader(ctx context.Context, f *file) error {
	if f.reader == nil {
		return nil
	}
	err := r.flush(ctx, f)
	r.dropReader(f)
	return err
}

// dropReader closes the reader of a file. If it had unsaved records, the file is read again.
func (r *run) dropReader(f *file) {
	if f.reader == nil {
		return
	}
	if f.reader.record.pending() && f.state.LeftOut == "" {
		f.state.Bytes = 0
		r.changed(f)
	}
	f.reader.growing.Close()
	f.reader = nil
	r.active = slices.DeleteFunc(r.active, func(other *file) bool { return other == f })
}

// flush commits what the reader of a file recorded. If another process recorded the file meanwhile, the file is read
// again.
func (r *run) flush(ctx context.Context, f *file) error {
	if f.reader == nil {
		return nil
	}
	if lines := f.reader.growing.Unplaced(); len(lines) > 0 { // of no session: they are kept as they are
		f.reader.record.add(ctx, "", lineage.ThreadID{}, lines)
	}
	if !f.reader.record.pending() {
		return nil
	}
	err := f.reader.record.flush(ctx)
	if err == nil {
		f.failures = 0
		return nil
	}
	r.dropReader(f)
	if isOvertaken(err) {
		r.waiting[f] = r.clock.Now()
		return nil
	}
	return err
}

// closeReaders closes the readers that were not used for some time, and all but the most recently used.
func (r *run) closeReaders(ctx context.Context, most int) error {
	for len(r.withRows) > 0 && r.clock.Now().Sub(r.withRows[0].rows.used) >= readerTime {
		r.dropRows(r.withRows[0])
	}
	for len(r.active) > most || len(r.active) > 0 && r.clock.Now().Sub(r.active[0].reader.used) >= readerTime {
		f := r.active[0]
		if err := r.setAside(ctx, f, r.closeReader(ctx, f)); err != nil {
			return err
		}
	}
	return nil
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
	r.took(f, reader.taking, &report, now, end)
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

// endsLine reports whether the byte before an offset ends a line.
func endsLine(r io.ReaderAt, end int64) (bool, error) {
	var last [1]byte
	_, err := r.ReadAt(last[:], end-1)
	return last[0] == '\n', err
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

// openReader opens a reader at the start of a file, or where the store's record of it ends. It reports whether the file has to wait.
func (r *run) openReader(ctx context.Context, f *file, opened *os.File, now stamp, end int64, fresh bool) (wait bool, err error) {
	t := &taking{ctx: ctx, run: r, path: f.path, agent: f.agent(), alone: true}
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
	said := false
	for c, err := range archive.Read(t.ctx, source, archive.ReadOptions{Format: f.format(), Formats: r.options.Formats, Limits: r.options.Limits}) {
		if err == nil {
			if t.known = projectOf(c); t.known != "" {
				return false
			}
			said = said || c.Says()
		}
	}
	known := time.Unix(0, now.modified).Add(projectWait)
	switch {
	case r.clock.Now().Before(known):
		r.waiting[f] = known
	case said:
		return false
	default:
		f.undecided = now
	}
	return true
}

func (r *run) sourceOf(f *file) SourceOf {
	return SourceOf{Machine: r.options.Machine.Name, Agent: f.agent(), Path: RecordedPath(f.path)}
}

// recorded returns the stored source of a file, or nil, and its hash if the file begins with it.
func (r *run) recorded(ctx context.Context, f *file, opened io.ReaderAt, now stamp) (found *Source, sum hash.Hash, err error) {
	found, err = FindSource(ctx, r.store, r.options.Machine.ID, RecordedPath(f.path))
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil || found.Recorded.Bytes > now.size || found.Recorded.Bytes == 0 {
		return found, nil, err
	}
	sum = sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(opened, 0, found.Recorded.Bytes)); err != nil {
		return nil, nil, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != found.Recorded.Digest {
		return found, nil, nil
	}
	return found, sum, nil
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
