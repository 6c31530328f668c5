package bundle

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// WriteOptions say what a bundle holds. The zero value is everything.
type WriteOptions struct {
	// Threads and Contexts are those chosen, contexts without the others of their
	// thread. Everything when both are empty.
	Threads  []structure.ThreadID
	Contexts []structure.ContextID
	// Have, when not nil, is what the other side has: it is left out.
	Have *Inventory
	// Progress, when not nil, is called now and then with how many spans are written.
	Progress func(spans uint64)
}

// WriteReport tells what was written.
type WriteReport struct {
	Threads  uint64 `json:"threads"`
	Contexts uint64 `json:"contexts"`
	Spans    uint64 `json:"spans"`
	Blocks   uint64 `json:"blocks"`
	Chunks   uint64 `json:"chunks"`
	Values   uint64 `json:"values"`
	// Erased counts the blocks of which only the description is left.
	Erased uint64 `json:"erased"`
	// Left counts the blocks and chunks that the other side has.
	Left  uint64 `json:"left"`
	Bytes int64  `json:"bytes"`
}

// Write writes a bundle of a store, as of one commit, while the store is read and
// written. It is ErrExpired if that state goes away meanwhile; the bundle is then incomplete.
func Write(ctx context.Context, store *lineage.Store, w io.Writer, o WriteOptions) (report WriteReport, err error) {
	s, err := store.View().Snapshot(ctx)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out, err := newWriter(w)
	if err != nil {
		return report, err
	}
	defer out.close()
	e := exporter{
		ctx: ctx, from: s, out: out, o: o,
		seed: maphash.MakeSeed(), sent: make(map[prefix]uint64), runs: make(map[structure.RunID]uint64), busy: make(map[structure.RunID]struct{}),
		sets: make(map[structure.SpanSetID]struct{}), waiting: make(map[structure.RunID]struct{}), stated: make(map[structure.ThreadID]struct{}), done: make(map[structure.ContextID]struct{}),
	}
	if e.o.Have == nil {
		e.o.Have = NewInventory()
	}
	err = e.everything()
	if errors.Is(err, backend.ErrExpired) {
		err = fmt.Errorf("another process collected garbage or closed the store while the bundle was written, which is incomplete; write it again: %w", err)
	}
	if err != nil {
		return e.report, err
	}
	if err := out.end(); err != nil {
		return e.report, err
	}
	e.report.Bytes = out.written
	return e.report, nil
}

// Bounds of a commit in a bundle, which is one in the store that imports it:
// reading one message there decodes all of its commit.
const (
	commitBytes   = 192 << 10
	commitRecords = 2048
	recordBytes   = 128 // what a record takes besides bodies and metadata
)

// exporter writes a bundle. What is kept in memory of what was written is ids.
type exporter struct {
	ctx    context.Context
	from   backend.Reader
	out    *writer
	o      WriteOptions
	report WriteReport
	seed   maphash.Seed

	sent   map[prefix]uint64          // content, with a hash of what was said of it
	runs   map[structure.RunID]uint64 // the last place written or left out
	busy   map[structure.RunID]struct{}
	sets   map[structure.SpanSetID]struct{}
	stated map[structure.ThreadID]struct{}
	done   map[structure.ContextID]struct{}
	chosen map[structure.ContextID]struct{} // nil for all

	history write.Batch
	waiting map[structure.RunID]struct{} // whose spans are in history
	facts   write.Batch
	single  write.Batch // for commit
	valued  write.Batch // values
	encoder structure.Encoder
}

func empty(b *write.Batch) bool {
	records, _ := b.Size()
	return records == 0
}

func full(b *write.Batch) bool {
	records, bytes := b.Size()
	return bytes+recordBytes*records >= commitBytes || records >= commitRecords
}

// commit writes records as an entry. Times in records are written relative to t.
func (e *exporter) commit(tag byte, t time.Time, records ...structure.Record) error {
	e.single.Reset(t)
	e.single.Adopt(records...)
	return e.flush(tag, &e.single)
}

// flush writes a batch as an entry and empties it.
func (e *exporter) flush(tag byte, b *write.Batch) error {
	if empty(b) {
		return nil
	}
	encoded, err := b.Encode(&e.encoder)
	if err != nil {
		return err
	}
	if b.Reset(time.Time{}); b == &e.history {
		clear(e.waiting)
	}
	return e.out.entry(tag, encoded)
}

// A group is the contexts of a thread, or those without one.
type group struct {
	thread   structure.ThreadID
	contexts []structure.ContextID
	whole    bool
}

func (e *exporter) everything() error {
	groups, err := e.groups()
	if err != nil {
		return err
	}
	for _, g := range groups {
		if !g.thread.IsZero() {
			if err := e.stateThread(g.thread); err != nil {
				return err
			}
		}
		if g.contexts == nil {
			if g.contexts, err = e.contextsOf(g.thread); err != nil {
				return err
			}
		}
		for _, id := range g.contexts {
			if err := e.lineOf(id); err != nil {
				return err
			}
		}
		if g.whole {
			if err := e.kept(g.thread); err != nil {
				return err
			}
		}
		if !g.thread.IsZero() {
			if err := e.names(g); err != nil {
				return err
			}
		}
	}
	if err := e.flushFacts(); err != nil {
		return err
	}
	return e.values(len(e.o.Threads)+len(e.o.Contexts) == 0)
}

// groups returns what was chosen in the order of its ids. Groups that are whole
// have no contexts yet.
func (e *exporter) groups() ([]group, error) {
	var groups []group
	if len(e.o.Threads)+len(e.o.Contexts) == 0 {
		groups = append(groups, group{whole: true})
		for t, err := range e.from.Threads(e.ctx, structure.ThreadID{}) {
			if err != nil {
				return nil, err
			}
			groups = append(groups, group{thread: t.ID, whole: true})
		}
		return groups, nil
	}
	e.chosen = make(map[structure.ContextID]struct{})
	parts := make(map[structure.ThreadID]*group)
	for _, id := range e.o.Threads {
		if _, err := e.from.Thread(e.ctx, id); err != nil {
			return nil, err
		}
		contexts, err := e.contextsOf(id)
		if err != nil {
			return nil, err
		}
		for _, c := range contexts {
			e.chosen[c] = struct{}{}
		}
		parts[id] = &group{thread: id, whole: true, contexts: contexts}
	}
	for _, id := range e.o.Contexts {
		c, err := e.from.Context(e.ctx, id)
		if err != nil {
			return nil, err
		}
		g := parts[c.Thread]
		if g == nil {
			g = &group{thread: c.Thread}
			parts[c.Thread] = g
		}
		if _, known := e.chosen[id]; !known && !g.whole {
			g.contexts = append(g.contexts, id)
		}
		e.chosen[id] = struct{}{}
	}
	for _, g := range parts {
		slices.SortFunc(g.contexts, structure.ContextID.Compare)
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b group) int { return a.thread.Compare(b.thread) })
	return groups, nil
}

// contextsOf returns a thread's contexts, or those of none, in the order of their
// ids.
func (e *exporter) contextsOf(thread structure.ThreadID) ([]structure.ContextID, error) {
	ids := []structure.ContextID{}
	for c, err := range e.from.Contexts(e.ctx, thread, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if c.Thread == thread {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// has reports whether the bundle is to have a context.
func (e *exporter) has(id structure.ContextID) bool {
	if e.chosen == nil {
		return true
	}
	_, ok := e.chosen[id]
	return ok
}

// stateThread writes a thread without its active context, which comes later.
func (e *exporter) stateThread(id structure.ThreadID) error {
	if _, known := e.stated[id]; known {
		return nil
	}
	e.stated[id] = struct{}{}
	t, err := e.from.Thread(e.ctx, id)
	if err != nil {
		return err
	}
	t.Active = structure.ContextID{}
	e.report.Threads++
	return e.fact(t.UpdatedAt, t)
}

// fact adds a record, and those that must be in one commit with it, to those of the same
// time.
func (e *exporter) fact(at time.Time, records ...structure.Record) error {
	if full(&e.facts) || !empty(&e.facts) && !e.facts.Time().Equal(write.Kept(at)) {
		if err := e.flushFacts(); err != nil {
			return err
		}
	}
	if empty(&e.facts) {
		e.facts.Reset(at)
	}
	e.facts.Adopt(records...)
	return nil
}

// flushFacts writes the facts, and before them the history that they are about.
func (e *exporter) flushFacts() error {
	if err := e.flush(entryHistory, &e.history); err != nil {
		return err
	}
	return e.flush(entryFacts, &e.facts)
}

// lineOf writes a context after those of its parents that come along.
func (e *exporter) lineOf(id structure.ContextID) error {
	var line []backend.Context
	for !id.IsZero() && e.has(id) {
		if _, written := e.done[id]; written {
			break
		}
		c, err := e.from.Context(e.ctx, id)
		if errors.Is(err, backend.ErrNotFound) && len(line) > 0 {
			break // the parent was deleted
		}
		if err != nil {
			return err
		}
		e.done[id] = struct{}{}
		line, id = append(line, c), c.Parent
	}
	for _, c := range slices.Backward(line) {
		if err := e.context(&c); err != nil {
			return fmt.Errorf("context %v: %w", c.ID, err)
		}
	}
	return nil
}

// context writes the history that a context refers to, and then the context with
// its reflog and summaries.
func (e *exporter) context(c *backend.Context) error {
	records := []structure.Record{&c.Context}
	refs := []structure.SpanRef{c.Tip, c.Base}
	for r, err := range e.from.Reflog(e.ctx, c.ID) {
		if err != nil {
			return err
		}
		records, refs = append(records, r), append(refs, r.From, r.To)
	}
	for s, err := range e.from.Summaries(e.ctx, c.ID) {
		if err != nil {
			return err
		}
		records, refs = append(records, s), append(refs, s.From, s.To)
		if err := e.content(s.Content); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		if err := e.line(ref); err != nil {
			return err
		}
	}
	if !c.Set.IsZero() {
		if err := e.spanSet(c.Set); err != nil {
			return err
		}
	}
	if !c.Thread.IsZero() {
		if err := e.stateThread(c.Thread); err != nil {
			return err
		}
	}
	e.report.Contexts++
	return e.fact(time.UnixMilli(c.MovedAt).UTC(), records...)
}

// kept writes the runs that a thread keeps, be they of no context. The thread comes before
// them: where it is, nothing of them is collected.
func (e *exporter) kept(id structure.ThreadID) error {
	if id.IsZero() {
		return nil
	}
	t, err := e.from.Thread(e.ctx, id)
	if err != nil || !t.Keeps {
		return err
	}
	if err := e.flushFacts(); err != nil {
		return err
	}
	for run, err := range e.from.RunsOf(e.ctx, id, structure.RunID{}) {
		if err != nil {
			return err
		}
		last, err := e.from.Last(e.ctx, run.ID)
		if err != nil {
			return err
		}
		if err := e.line(last); err != nil {
			return err
		}
	}
	return nil
}

// names writes what a thread calls its contexts and spans, and which is active.
func (e *exporter) names(g group) error {
	t, err := e.from.Thread(e.ctx, g.thread)
	if err != nil {
		return err
	}
	var records []structure.Record
	for b, err := range e.from.Branches(e.ctx, g.thread, "", "") {
		if err != nil {
			return err
		}
		if e.has(b.Context) {
			records = append(records, b)
		}
	}
	for c, err := range e.from.Checkpoints(e.ctx, g.thread, "") {
		if err != nil {
			return err
		}
		if !g.whole {
			if on, err := e.onAny(c.Span, g.contexts); err != nil {
				return err
			} else if !on {
				continue
			}
		}
		if err := e.line(c.Span); err != nil {
			return err
		}
		records = append(records, c)
	}
	if !e.has(t.Active) {
		t.Active = structure.ContextID{}
	}
	if err := e.flushFacts(); err != nil {
		return err
	}
	return e.commit(entryNames, t.UpdatedAt, append(records, t)...)
}

// onAny reports whether a span is in the history of any of the contexts.
func (e *exporter) onAny(span structure.SpanRef, contexts []structure.ContextID) (bool, error) {
	for _, id := range contexts {
		c, err := e.from.Context(e.ctx, id)
		if err != nil {
			return false, err
		}
		if on, err := structure.IsAncestor(span, c.Tip, e.lookup()); err != nil || on {
			return on, err
		}
	}
	return false, nil
}

func (e *exporter) lookup() structure.RunLookup { return backend.Runs(e.ctx, e.from) }
