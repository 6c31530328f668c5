package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Import adds the content of a bundle to a store. Everything is durable when it returns.
func Import(ctx context.Context, store *lineage.Store, r io.Reader, o ImportOptions) (ImportReport, error) {
	source, err := newSource(r)
	if err != nil {
		return ImportReport{}, err
	}
	defer source.close()
	source.progress = o.Progress
	writer := write.Of(store)
	bodies, err := check(ctx, source, writer.Engine())
	if err != nil {
		return ImportReport{}, err
	}
	closed, sources := make(map[structure.RunID]bool), newSourceSet()
	for attempt := 1; ; {
		im := newImporter(ctx, writer, o, closed, sources)
		err := im.readAll(source, bodies)
		if err == nil || ctx.Err() != nil {
			return im.report, err
		}
		// Another writer or a collection may have changed the state that a commit was based on. The whole bundle is
		// read again, because a collection may also have deleted content that earlier commits relied on. What was
		// applied before is recognised.
		var refused *refusedError
		var subject *backend.SubjectError
		switch {
		case !errors.As(err, &refused) && !errors.Is(err, backend.ErrNotFound):
			return im.report, err
		case errors.As(err, &subject) && subject.Subject == "span" && errors.Is(err, backend.ErrConflict) && closeRun(closed, subject.ID):
			continue
		case attempt == maxAttempts:
			return im.report, err
		}
		if err := sleep(ctx, firstWait<<(2*attempt)); err != nil {
			return im.report, err
		}
		attempt++
	}
}

// A bundle is applied up to maxAttempts times, with growing waits, because a collection may be deleting what the
// import has found. After that, a refused commit counts as an error in the bundle.
const (
	maxAttempts = 5
	firstWait   = time.Millisecond
)

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// closeRun records that no spans can be added to the run of a span. It reports whether that is new.
func closeRun(closed map[structure.RunID]bool, span string) bool {
	ref, err := structure.ParseSpanRef(span)
	known := closed[ref.Run]
	closed[ref.Run] = true
	return err == nil && !known
}

// readAll reads the bundle as often as necessary: its bodies before all else, if they have to be, and all of it again if
// contexts of the store come back to life.
func (im *importer) readAll(source *bundleInput, bodies bool) error {
	pass := func(read func(io.Reader) error) error {
		r, err := source.again()
		if err != nil {
			return err
		}
		return read(r)
	}
	if bodies {
		if err := pass(im.readBodies); err != nil {
			return err
		}
	}
	if err := pass(im.read); err != nil {
		return err
	}
	if im.reviving = len(im.revive) > 0; im.reviving {
		if err := pass(im.read); err != nil {
			return err
		}
	}
	return im.engine.Sync(im.ctx)
}

func (im *importer) read(r io.Reader) error {
	if err := im.begin(r); err != nil {
		return err
	}
	defer im.in.close()
	im.taken = make(map[structure.ContextID]bool)
	im.remnants = make(map[structure.ContextID]*structure.Remnant)
	if err := im.in.each(im.ctx, im.entry); err != nil {
		return err
	}
	return im.endValues()
}

// readBodies stores and checks bodies in chunks before anything uses them.
func (im *importer) readBodies(r io.Reader) error {
	if err := im.begin(r); err != nil {
		return err
	}
	defer im.in.close()
	return im.in.each(im.ctx, im.bodyEntry)
}

// begin starts reading the bundle.
func (im *importer) begin(r io.Reader) error {
	first := im.in == nil
	var err error
	if im.in, err = newReader(r); err != nil || !first {
		return err
	}
	head, err := im.engine.Head(im.ctx)
	im.wasEmpty = head.Number == 0
	return err
}

func (im *importer) entry(e *decodedEntry) error {
	if im.reviving {
		return im.reviveEntry(e)
	}
	switch e.tag {
	case entryRun:
		im.open.begin(&e.piece)
	case entryHistory:
		return im.history(e.commit)
	case entryChunks:
		return im.chunks(e.commit)
	case entryBody, entryLeft, entryErased:
		return im.description(e.tag, e.block())
	case entryFacts:
		return im.facts(e)
	case entryNames:
		return im.names(e.commit)
	case entryValues:
		return im.values(e.commit)
	}
	return nil
}

// bundleInput is a bundle that can be read more than once.
type bundleInput struct {
	r        io.Reader
	seeker   io.ReadSeeker
	start    int64
	spool    *scratch.File
	progress func(done, total int64)
	done     int64
	size     int64 // 0 until the bundle was read once
}

func newSource(r io.Reader) (*bundleInput, error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			return &bundleInput{r: r, seeker: s, start: start}, nil
		}
	}
	f, err := scratch.NewFile()
	if err != nil {
		return nil, err
	}
	return &bundleInput{r: io.TeeReader(r, f), seeker: f, spool: f}, nil
}

func (s *bundleInput) close() {
	if s.spool != nil {
		_ = s.spool.Close() // the next process that needs one tries again
	}
}

func (s *bundleInput) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.done += int64(n); s.progress != nil && n > 0 {
		s.progress(min(s.done, max(2*s.size, s.done)), 2*s.size)
	}
	return n, err
}

// again returns a reader at the start of the bundle.
func (s *bundleInput) again() (io.Reader, error) {
	if s.size == 0 {
		s.size = s.done
	}
	s.r, s.done = s.seeker, s.size
	if _, err := s.seeker.Seek(s.start, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	return s, nil
}
