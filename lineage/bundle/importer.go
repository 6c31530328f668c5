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

// OnConflict chooses what happens to a context that has advanced both in the store and in the bundle.
type OnConflict int

const (
	// KeepBoth leaves ours unchanged. Theirs becomes another context, with a branch such as main-theirs if ours has a
	// branch.
	KeepBoth OnConflict = iota
	// Fail ends the import with a *ConflictError. Threads before the conflict are imported.
	Fail
	// TakeTheirs moves ours to the tip of theirs, and records the old tip in the reflog.
	TakeTheirs
)

// ParseOnConflict returns the choice with a name: keep-both, take-theirs or fail.
func ParseOnConflict(name string) (OnConflict, error) {
	switch name {
	case "keep-both":
		return KeepBoth, nil
	case "take-theirs":
		return TakeTheirs, nil
	case "fail":
		return Fail, nil
	}
	return 0, fmt.Errorf("%.100q: %w: must be keep-both, take-theirs or fail", name, backend.ErrInvalid)
}

// ImportOptions configure an import. A zero field means its default.
type ImportOptions struct {
	OnConflict OnConflict
	// Progress, when not nil, is called from time to time with the number of bytes read and their total. The total is
	// twice the size of the bundle, because it is read twice, or 0 while unknown.
	Progress func(done, total int64)
}

// ImportReport counts what an import added.
type ImportReport struct {
	Threads  uint64 `json:"threads"`
	Contexts uint64 `json:"contexts"`
	// Moved counts contexts in the store that were moved to their tip in the bundle.
	Moved  uint64 `json:"moved"`
	Spans  uint64 `json:"spans"`
	Blocks uint64 `json:"blocks"`
	Chunks uint64 `json:"chunks"`
	// Values counts values that were set, including earlier ones of their history.
	Values uint64 `json:"values"`
	// Erased counts content of which the bundle has only a description. Kept counts content that was erased in this
	// store and remains erased, or was erased in the other store and is kept here. Content of new messages is stored
	// even if it was erased in this store before.
	Erased uint64 `json:"erased"`
	Kept   uint64 `json:"kept"`
	// Sources counts new messages that cannot be found by their source ids, because other messages in the store have
	// these ids.
	Sources uint64 `json:"sources"`
	// Conflicts are the contexts that have advanced both in the store and in the bundle.
	Conflicts []Conflict `json:"conflicts"`
}

// Conflict is a context that has advanced both in the store and in the bundle.
type Conflict struct {
	Context structure.ContextID `json:"context"`
	// Theirs is the context with the tip of the bundle. With TakeTheirs it is the same context.
	Theirs structure.ContextID `json:"theirs"`
}

// refusedError marks a commit that the engine refused because of the state of the store.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

// importer applies a bundle that was checked. Its memory grows with the number of contexts, of runs with other ids in
// the store, and of blocks with other descriptions in the store.
type importer struct {
	ctx    context.Context
	writer *write.Writer
	engine backend.Engine
	o      ImportOptions
	report ImportReport
	in     *reader

	wasEmpty     bool                // the store was empty
	skipChunks   bool                // the following chunks are of a body that the store has
	checked      map[content.ID]bool // bodies in chunks that were read from the store
	open         pieces
	closed       map[structure.RunID]bool
	relocated    map[structure.RunID][]relocation
	contexts     map[structure.ContextID]structure.ContextID
	taken        map[structure.ContextID]bool               // contexts in the store that belong to a context of the bundle
	remnants     map[structure.ContextID]*structure.Remnant // by id in the bundle, with the id in the store
	descriptions map[content.ID]content.Block
	revive       map[content.ID]bool // erased in the store, and used by new spans
	reviving     bool
	pending      additions
	merging      merging
	newValues    write.Batch // for the next commit of values
	sources      sourceSet   // of all attempts
}

func newImporter(ctx context.Context, writer *write.Writer, o ImportOptions, closed map[structure.RunID]bool, sources sourceSet) *importer {
	return &importer{
		ctx: ctx, writer: writer, engine: writer.Engine(), o: o, closed: closed,
		open: make(pieces), relocated: make(map[structure.RunID][]relocation),
		contexts: make(map[structure.ContextID]structure.ContextID), descriptions: make(map[content.ID]content.Block), revive: make(map[content.ID]bool),
		checked: make(map[content.ID]bool), sources: sources,
	}
}

// relocation says where the spans of a bundle's run are in the store. Spans after a place of the run are in another
// run, from its start.
type relocation struct {
	after uint64
	run   structure.RunID
}

// additions is what the commit being prepared adds.
type additions struct {
	digests map[structure.SpanRef]structure.Digest
	ends    map[structure.RunID]uint64
	sets    map[structure.SpanSetID]bool
}

func newPending() additions {
	return additions{digests: make(map[structure.SpanRef]structure.Digest), ends: make(map[structure.RunID]uint64), sets: make(map[structure.SpanSetID]bool)}
}

// merging is the state of importing one value. The bundle has the latest record first, and then all records from the
// oldest on, unless there is only one.
type merging struct {
	key     structure.ValueKey // in the bundle
	latest  *structure.Value
	ours    *structure.Value // nil if there is none
	commit  uint64           // the commit that set ours
	done    bool             // ours is equal or newer
	history bool             // the records from the oldest on have started
	behind  bool             // the following records are newer than ours
}

// batch returns a batch for a commit that is not durable before Import ends.
func (im *importer) batch() *write.Batch {
	b := im.writer.Batch()
	b.Durability = backend.Normal
	return b
}

// put commits the records that fill adds to a batch.
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

// local returns the ref in the store of a span of the bundle.
func (im *importer) local(ref structure.SpanRef) structure.SpanRef {
	relocations := im.relocated[ref.Run]
	for i := len(relocations) - 1; i >= 0; i-- {
		if s := relocations[i]; ref.Seq > s.after {
			return structure.SpanRef{Run: s.run, Seq: ref.Seq - s.after}
		}
	}
	return ref
}

// localContext returns the id in the store of a context of the bundle.
func (im *importer) localContext(id structure.ContextID) structure.ContextID {
	if local, ok := im.contexts[id]; ok {
		return local
	}
	return id
}

// later compares times in milliseconds, the precision in which they are stored.
func later(a, b time.Time) bool { return a.UnixMilli() > b.UnixMilli() }

// commitDraft is a commit about threads and contexts being prepared.
type commitDraft struct {
	*write.Batch
	stated map[structure.ContextID]bool // remnants in the commit
	report ImportReport
}

// noteErased records content that new records use and that was erased in the store. It is stored again at the end,
// because its block may be in an earlier entry.
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

// find returns content in the store, or reports that it was erased there. For content that the store never had, it
// returns nil and false.
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
