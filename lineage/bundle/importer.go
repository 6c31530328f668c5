package bundle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
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

// relocation is where spans of a run of the bundle are here: those after a place of the run are in
// another run, from its start.
type relocation struct {
	after uint64
	run   structure.RunID
}

// pending is what the commit that is being prepared adds.
type pending struct {
	digests map[structure.SpanRef]structure.Digest
	ends    map[structure.RunID]uint64
	sets    map[structure.SpanSetID]bool
}

func newPending() pending {
	return pending{digests: make(map[structure.SpanRef]structure.Digest), ends: make(map[structure.RunID]uint64), sets: make(map[structure.SpanSetID]bool)}
}

// merging is the state of importing a value. The latest record comes first, and then all records from
// the oldest on, unless there is only one.
type merging struct {
	key     structure.ValueKey // in the bundle
	latest  *structure.Value
	ours    *structure.Value // nil if there is none
	commit  uint64           // that set ours
	done    bool             // ours is the same or newer
	history bool             // records from the oldest on have begun
	behind  bool             // the following records are newer than ours
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

// local returns the ref here of a span of the bundle.
func (im *importer) local(ref structure.SpanRef) structure.SpanRef {
	relocations := im.relocated[ref.Run]
	for i := len(relocations) - 1; i >= 0; i-- {
		if s := relocations[i]; ref.Seq > s.after {
			return structure.SpanRef{Run: s.run, Seq: ref.Seq - s.after}
		}
	}
	return ref
}

// localContext returns the id here of a context of the bundle.
func (im *importer) localContext(id structure.ContextID) structure.ContextID {
	if local, ok := im.contexts[id]; ok {
		return local
	}
	return id
}

// later compares times in milliseconds, as they are stored.
func later(a, b time.Time) bool { return a.UnixMilli() > b.UnixMilli() }

// change is a commit about threads and contexts that is being prepared.
type change struct {
	*write.Batch
	stated map[structure.ContextID]bool // remnants
	report ImportReport
}

// noteErased notes content that was erased here and that records which are added use. It is stored again
// at the end, because its block may be in an earlier entry.
func (im *importer) noteErased(used map[content.ID]bool) error {
	if im.wasEmpty {
		return nil
	}
	var ids []content.ID
	for id, added := range used {
		if added {
			ids = append(ids, id)
		}
	}
	has, err := im.engine.Has(im.ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if has[i] {
			continue
		}
		_, erased, err := im.find(id)
		if err != nil {
			return err
		}
		if erased {
			im.revive[id] = true
		}
	}
	return nil
}

// find returns content that is here, or whether it was erased here. It is neither for content that the
// store never had.
func (im *importer) find(id content.ID) (ours *structure.Block, erased bool, err error) {
	if im.wasEmpty {
		return nil, false, nil
	}
	blocks, err := im.engine.Blocks(im.ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrErased):
		return nil, true, nil
	case errors.Is(err, backend.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return blocks[0], false, nil
}
