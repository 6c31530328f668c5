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

// OnConflict chooses what to do with a context that has advanced both here and in the bundle.
type OnConflict int

const (
	// KeepBoth does not change ours. Theirs becomes another context, with a branch such as
	// main-theirs if ours has a branch.
	KeepBoth OnConflict = iota
	// Fail ends the import with a *ConflictError. Threads before the conflict are imported.
	Fail
	// TakeTheirs moves ours to the tip of theirs, and notes its old tip in the reflog.
	TakeTheirs
)

// ImportOptions configure an import. The zero value of each field is a default.
type ImportOptions struct {
	OnConflict OnConflict
	// Progress, when not nil, is called from time to time with the bytes that were read and their
	// total: twice the size of the bundle, which is read twice, or 0 while that is not known.
	Progress func(done, total int64)
}

// ImportReport counts what an import added.
type ImportReport struct {
	Threads  uint64 `json:"threads"`
	Contexts uint64 `json:"contexts"`
	// Moved counts contexts that were here and moved to their tip in the bundle.
	Moved  uint64 `json:"moved"`
	Spans  uint64 `json:"spans"`
	Blocks uint64 `json:"blocks"`
	Chunks uint64 `json:"chunks"`
	// Values counts values that were set, including those of their history.
	Values uint64 `json:"values"`
	// Erased counts content of which the bundle has only the description. Kept counts content
	// that was erased here and remains erased, or was erased there and is kept here. Content of
	// new messages is stored even if it was erased here before.
	Erased uint64 `json:"erased"`
	Kept   uint64 `json:"kept"`
	// Sources counts messages that were added and are not found by their source ids, which find
	// other messages here.
	Sources uint64 `json:"sources"`
	// Conflicts are the contexts that have advanced both here and in the bundle.
	Conflicts []Conflict `json:"conflicts"`
}

// Conflict is a context that has advanced both here and in the bundle.
type Conflict struct {
	Context structure.ContextID `json:"context"`
	// Theirs is the context with the tip of the bundle. It is the same context under TakeTheirs.
	Theirs structure.ContextID `json:"theirs"`
}

// Import adds the content of a bundle to a store. It returns when all of it is durable.
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
	closed := make(map[structure.RunID]bool)
	for attempt := 1; ; {
		again, err := source.again()
		if err != nil {
			return ImportReport{}, err
		}
		im := newImporter(ctx, writer, o, closed)
		if bodies {
			if err = im.readBodies(again); err == nil {
				again, err = source.again()
			}
		}
		if err == nil {
			err = im.read(again)
		}
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
		// Another writer or a collection may have changed the state that a commit was prepared
		// for. The whole bundle is read again, because a collection may also have deleted what
		// earlier commits relied on. What was applied is recognised.
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

// A bundle is applied up to maxAttempts times, with growing waits, because a collection may be deleting
// what was found. After that a refused commit is taken to be the fault of the bundle.
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

// closeRun notes that no spans can be added to the run of a span, and reports whether that was not
// known.
func closeRun(closed map[structure.RunID]bool, span string) bool {
	ref, err := structure.ParseSpanRef(span)
	known := closed[ref.Run]
	closed[ref.Run] = true
	return err == nil && !known
}

// refusedError marks a commit that the engine refused because of the state of the store.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// importer applies a bundle that was checked. Its memory grows with the number of contexts, of runs
// with other ids here, and of blocks with other descriptions here.
type importer struct {
	ctx    context.Context
	writer *write.Writer
	engine backend.Engine
	o      ImportOptions
	report ImportReport
	in     *reader

	wasEmpty     bool                // the store was empty
	skipChunks   bool                // the chunks that follow are of a body that is here
	checked      map[content.ID]bool // bodies in chunks that are here and were read
	open         pieces
	closed       map[structure.RunID]bool
	relocated    map[structure.RunID][]relocation
	contexts     map[structure.ContextID]structure.ContextID
	taken        map[structure.ContextID]bool               // contexts here that belong to a context of the bundle
	remnants     map[structure.ContextID]*structure.Remnant // with their ids here
	descriptions map[content.ID]content.Block
	revive       map[content.ID]bool // erased here, and used by spans that were added
	reviving     bool
	pending      pending
	merging      merging
	newValues    write.Batch // of the commit of values that is being prepared
}

func newImporter(ctx context.Context, writer *write.Writer, o ImportOptions, closed map[structure.RunID]bool) *importer {
	return &importer{
		ctx: ctx, writer: writer, engine: writer.Engine(), o: o, closed: closed,
		open: make(pieces), relocated: make(map[structure.RunID][]relocation),
		contexts: make(map[structure.ContextID]structure.ContextID), descriptions: make(map[content.ID]content.Block), revive: make(map[content.ID]bool),
		checked: make(map[content.ID]bool),
	}
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

// readBodies stores bodies in chunks, and checks them, before anything uses them.
func (im *importer) readBodies(r io.Reader) error {
	if err := im.begin(r); err != nil {
		return err
	}
	defer im.in.close()
	return im.in.each(im.ctx, im.bodyEntry)
}

// begin begins to read the bundle.
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

func (im *importer) entry(e *entry) error {
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

// batch returns a batch for a commit that is not durable until Import ends.
func (im *importer) batch() *write.Batch {
	b := im.writer.Batch()
	b.Durability = backend.Normal
	return b
}

// put commits the batch that fill fills.
func (im *importer) put(fill func(b *write.Batch)) error {
	b := im.batch()
	defer im.writer.Release(b)
	fill(b)
	_, err := im.commit(b)
	return err
}

// commit commits a batch.
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
	r        io.Reader
	seeker   io.ReadSeeker
	start    int64
	spool    *os.File
	progress func(done, total int64)
	done     int64
	size     int64 // 0 until it was read once
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
