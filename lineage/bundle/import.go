package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// OnConflict says what becomes of a context that went on both here and in the
// bundle.
type OnConflict int

const (
	// KeepBoth leaves ours where it stands. Theirs becomes another context, under a
	// branch with a free name such as main-theirs if ours has one.
	KeepBoth OnConflict = iota
	// Fail ends the import with a *ConflictError. Threads before it were imported.
	Fail
	// TakeTheirs moves ours to where theirs stands. Where it stood is in its reflog.
	TakeTheirs
)

// ImportOptions configure an import. The zero value of each field is a default.
type ImportOptions struct {
	OnConflict OnConflict
	// Progress, when not nil, is called now and then with how much was done of what
	// is to do, in bytes of the bundle, which is read twice. Total is 0 while that is
	// not known.
	Progress func(done, total int64)
}

// ImportReport tells what an import added.
type ImportReport struct {
	Threads  uint64 `json:"threads"`
	Contexts uint64 `json:"contexts"`
	// Moved counts contexts that were here and now stand where the bundle has them.
	Moved  uint64 `json:"moved"`
	Spans  uint64 `json:"spans"`
	Blocks uint64 `json:"blocks"`
	Chunks uint64 `json:"chunks"`
	// Values counts what was set of values, their history included.
	Values uint64 `json:"values"`
	// Erased counts content of which the bundle had nothing but the description,
	// Kept content that was erased here and stays so, or was erased there and stays here.
	// What messages that were added say is stored even if it was erased here before.
	Erased uint64 `json:"erased"`
	Kept   uint64 `json:"kept"`
	// Sources counts messages that cannot be found by their source ids, because those
	// find other messages here.
	Sources uint64 `json:"sources"`
	// Conflicts are contexts that went on both here and in the bundle.
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Conflict tells of a context that went on both here and in the bundle.
type Conflict struct {
	Context structure.ContextID `json:"context"`
	// Theirs is the context that stands where the bundle has it: the same one when
	// theirs was taken.
	Theirs structure.ContextID `json:"theirs"`
}

// Import adds what is in a bundle to a store. It returns when all of it survives
// power loss.
func Import(ctx context.Context, store *lineage.Store, r io.Reader, o ImportOptions) (ImportReport, error) {
	source, err := newSource(r)
	if err != nil {
		return ImportReport{}, err
	}
	defer source.close()
	source.progress = o.Progress
	writer := write.Of(store)
	if err := check(ctx, source, writer.Engine()); err != nil {
		return ImportReport{}, err
	}
	closed := make(map[structure.RunID]struct{})
	for attempt := 1; ; {
		again, err := source.again()
		if err != nil {
			return ImportReport{}, err
		}
		im := newImporter(ctx, writer, o, closed)
		err = im.read(again)
		if im.reviving = err == nil && len(im.revive) > 0; im.reviving {
			if again, err = source.again(); err == nil {
				err = im.read(again)
			}
		}
		if err == nil {
			err = im.engine.Sync(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return im.report, err
		}
		// Others write and collect meanwhile, so the state that a commit was made for may
		// have passed. One commit is not tried again by itself, for it builds on what was
		// found for those before it, which a collection may have taken: the bundle is read
		// again, and what was applied is recognised.
		var refused *refusedError
		var subject *backend.SubjectError
		switch {
		case !errors.As(err, &refused) && !errors.Is(err, backend.ErrNotFound):
			return im.report, err
		case errors.As(err, &subject) && subject.Subject == "span" && errors.Is(err, backend.ErrConflict) && closeRun(closed, subject.ID):
			continue
		case attempt == attempts:
			return im.report, err
		}
		if err := sleep(ctx, wait<<(2*attempt)); err != nil {
			return im.report, err
		}
		attempt++
	}
}

// attempts is how often a bundle is applied before what a commit is refused for is
// taken to be the bundle's fault. The time between them grows: a collection may be
// about to take out what was found.
const (
	attempts = 5
	wait     = time.Millisecond
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

// closeRun notes that nothing can be added to the run of a span, and reports whether
// that is news.
func closeRun(closed map[structure.RunID]struct{}, span string) bool {
	ref, err := structure.ParseSpanRef(span)
	_, known := closed[ref.Run]
	closed[ref.Run] = struct{}{}
	return err == nil && !known
}

// refusedError marks that the engine refused a commit for the state it met.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// importer applies a bundle that was checked. What it remembers is in proportion to
// its contexts, the runs that are not under their own ids here, the content that is
// described differently, and a commit.
type importer struct {
	ctx    context.Context
	writer *write.Writer
	engine backend.Engine
	o      ImportOptions
	report ImportReport
	in     *reader

	fresh    bool // there was nothing here
	known    bool // whether the chunks that follow are of a body that is not needed
	open     map[structure.RunID]*laying
	closed   map[structure.RunID]struct{}
	moved    map[structure.RunID][]stretch
	contexts map[structure.ContextID]structure.ContextID
	taken    map[structure.ContextID]struct{} // contexts here that are one of the bundle's
	differ   map[content.ID]content.Block
	revive   map[content.ID]struct{} // erased here, and used by spans that were added
	reviving bool
	coming   coming
	merging  merging
	valued   valueBatch
}

func newImporter(ctx context.Context, writer *write.Writer, o ImportOptions, closed map[structure.RunID]struct{}) *importer {
	return &importer{
		ctx: ctx, writer: writer, engine: writer.Engine(), o: o, closed: closed,
		open: make(map[structure.RunID]*laying), moved: make(map[structure.RunID][]stretch),
		contexts: make(map[structure.ContextID]structure.ContextID), differ: make(map[content.ID]content.Block), revive: make(map[content.ID]struct{}),
		coming: newComing(),
	}
}

func (im *importer) corrupt(format string, args ...any) error {
	return corrupt(im.in.at, format, args...)
}

func (im *importer) read(r io.Reader) error {
	head, err := im.engine.Head(im.ctx)
	if err != nil {
		return err
	}
	im.fresh = head.Number == 0
	im.taken = make(map[structure.ContextID]struct{})
	if im.in, err = newReader(r); err != nil {
		return err
	}
	defer im.in.close()
	for {
		if im.ctx.Err() != nil {
			return context.Cause(im.ctx)
		}
		tag, b, err := im.in.next()
		if errors.Is(err, io.EOF) {
			return im.endValues()
		}
		if err != nil {
			return err
		}
		if err := im.entry(tag, b); err != nil {
			return err
		}
	}
}

func (im *importer) entry(tag byte, b []byte) error {
	switch tag {
	case entryRun:
		if im.reviving {
			return nil
		}
		p, ok := decodePiece(b)
		if !ok {
			return im.corrupt("malformed announcement of spans")
		}
		if p.from < p.last {
			im.open[p.run.ID] = &laying{piece: p}
		}
		return nil
	case entryLeftKey:
		return nil
	}
	commit, err := structure.DecodeCommit(b)
	if err != nil {
		return im.corrupt("%v", err)
	}
	if im.reviving {
		return im.revived(tag, commit)
	}
	switch tag {
	case entryHistory:
		return im.history(commit)
	case entryBody:
		im.known, err = im.settled(commit.Records[0].(*structure.Block).ID)
		return err
	case entryChunks:
		return im.chunks(commit)
	case entryLeft:
		return im.keep(commit.Records[0].(*structure.Block))
	case entryErased:
		return im.erased(commit.Records[0].(*structure.Block))
	case entryFacts:
		return im.facts(commit)
	case entryNames:
		return im.names(commit)
	case entryValues:
		return im.values(commit)
	}
	return im.corrupt("entry of unknown kind %d", tag)
}

// batch returns a batch for a commit that is not made durable by itself: see Import.
func (im *importer) batch() *write.Batch {
	b := im.writer.Batch()
	b.Durability = backend.Normal
	return b
}

// put adds what fill puts into a batch.
func (im *importer) put(fill func(b *write.Batch)) error {
	b := im.batch()
	defer im.writer.Release(b)
	fill(b)
	_, err := im.commit(b)
	return err
}

// commit adds a batch to the store.
func (im *importer) commit(b *write.Batch) (backend.Receipt, error) {
	receipt, err := im.writer.Commit(im.ctx, b)
	for _, refusal := range []error{backend.ErrNotFound, backend.ErrExists, backend.ErrConflict} {
		if errors.Is(err, refusal) {
			return receipt, &refusedError{fmt.Errorf("import of a bundle: %w", err)}
		}
	}
	return receipt, err
}

// source is a bundle that can be read more than once.
type source struct {
	r        io.Reader // where it is read the first time
	seeker   io.ReadSeeker
	start    int64
	spool    *os.File
	progress func(done, total int64)
	done     int64
	size     int64 // once known
}

func newSource(r io.Reader) (*source, error) {
	if s, ok := r.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			return &source{r: r, seeker: s, start: start}, nil
		}
	}
	f, err := os.CreateTemp("", "lineage-bundle-*")
	if err != nil {
		return nil, err
	}
	return &source{r: io.TeeReader(r, f), seeker: f, spool: f}, nil
}

func (s *source) close() {
	if s.spool != nil {
		_ = s.spool.Close()
		_ = os.Remove(s.spool.Name())
	}
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.done += int64(n); s.progress != nil && n > 0 {
		s.progress(min(s.done, max(2*s.size, s.done)), 2*s.size)
	}
	return n, err
}

// again returns to the start.
func (s *source) again() (io.Reader, error) {
	if s.size == 0 {
		s.size = s.done
	}
	s.r, s.done = s.seeker, s.size
	if _, err := s.seeker.Seek(s.start, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	return s, nil
}
