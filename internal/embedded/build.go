package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// builder turns a commit into index entries and checks it against the state that
// it is applied to. It does the same for a commit that is new and for one that
// is replayed; a replayed one passed the checks before, so only what the entries
// need is looked up.
//
// Work comes in two steps, because the place of a commit is known only once it
// is written: check may fail and changes nothing outside; locate cannot fail.
type builder struct {
	engine *Engine
	commit *structure.Commit
	number uint64
	millis int64
	replay bool

	slab    slab
	batch   []index.Entry
	pending map[string][]byte // of a large batch: key → value
	groups  map[string][]int  // of a large batch: prefix that is scanned → entries in the batch
	later   index.Maker       // makes the rest of the entries; nil when there are no more
	counts  counters
	scanned uint64 // entries that scan has looked at since the store was opened

	blocks assoc[content.ID, int64] // the sizes of those the commit brings

	// What a commit adds to the engine's recent state once it is written. A nil
	// context is one that was deleted.
	ends     assoc[structure.RunID, runEnd]
	runs     assoc[structure.RunID, structure.RunInfo]  // it begins, or begins others after
	digests  assoc[structure.SpanRef, structure.Digest] // of its spans; not all are kept
	contexts assoc[structure.ContextID, *liveContext]
	// moved is a context that was there before and that the commit moves, if nothing else
	// of the commit looks at it: it need not be copied. Most commits move one at most.
	moved struct {
		context *liveContext
		to      tip
	}
	movers  assoc[structure.ThreadID, mover]
	cuts    []structure.RunID
	created []structure.ContextID
	began   []structure.RunID

	// expected is a context as it was found before the commit, if one was.
	expected *liveContext

	// below is the packs below the index, and packed whether the commit is in one of
	// them and found there.
	below  *layer
	packed bool
}

// begin makes the engine's builder ready for a commit. The lock on writing is
// held, or the store is being opened.
func (b *builder) begin(e *Engine, c *structure.Commit, number uint64, replay bool) {
	b.engine, b.commit, b.number, b.millis, b.replay = e, c, number, c.Time.UnixMilli(), replay
	b.counts = e.counts
	b.slab.buf = b.slab.buf[:0] // the index copies what it is given
	if cap(b.batch) > 1<<12 {
		b.batch = nil // do not hold on to the largest commit ever
	}
	if len(b.batch) > 64 {
		clear(b.batch) // of a few it may hold on to what they were
	}
	b.batch, b.pending, b.groups, b.later = b.batch[:0], nil, nil, nil
	b.blocks.reset()
	b.ends.reset()
	b.runs.reset()
	b.digests.reset()
	b.contexts.reset()
	b.movers.reset()
	b.cuts = b.cuts[:0]
	b.created = b.created[:0]
	b.began = b.began[:0]
	b.expected, b.moved.context = nil, nil
}

// put adds an entry; a nil value deletes the key.
func (b *builder) put(key, value []byte) {
	b.batch = append(b.batch, index.Entry{Key: key, Value: value})
	if b.pending != nil {
		b.file(len(b.batch) - 1)
	} else if len(b.batch) > 64 {
		b.pending = make(map[string][]byte, 4*len(b.commit.Records))
		b.groups = make(map[string][]int)
		for i := range b.batch {
			b.file(i)
		}
	}
}

// file makes an entry of a large batch be found by its key, and by the prefix that
// scan looks for.
func (b *builder) file(i int) {
	e := &b.batch[i]
	_, again := b.pending[string(e.Key)]
	b.pending[string(e.Key)] = e.Value
	if prefix := scanned(e.Key); prefix != nil && !again {
		b.groups[string(prefix)] = append(b.groups[string(prefix)], i)
	}
}

var present = []byte{} // the value of keys that only have to be there

// get reads the state with what this commit added so far.
func (b *builder) get(key []byte) ([]byte, bool, error) {
	if b.pending != nil {
		if v, ok := b.pending[string(key)]; ok {
			return v, v != nil, nil
		}
	} else {
		for i := len(b.batch) - 1; i >= 0; i-- {
			if e := &b.batch[i]; string(e.Key) == string(key) {
				return e.Value, e.Value != nil, nil
			}
		}
	}
	if b.replay {
		return b.engine.get(key, b.number)
	}
	return b.engine.known(key)
}

func (b *builder) has(key []byte) (bool, error) {
	_, ok, err := b.get(key)
	return ok, err
}

// require refuses the commit unless the key is there.
func (b *builder) require(key []byte, subject string, id fmt.Stringer) error {
	if b.replay {
		return nil
	}
	ok, err := b.has(key)
	if err == nil && !ok {
		err = &backend.SubjectError{Subject: subject, ID: id.String(), Err: backend.ErrNotFound}
	}
	return err
}

// scratch returns a key for a lookup, valid until the next call.
func (b *builder) scratch(table byte, parts ...[]byte) []byte {
	start := b.slab.begin()
	k := b.slab.key(table, parts...)
	b.slab.buf = b.slab.buf[:start]
	return k
}

// check validates every record and adds the entries that do not depend on where
// the commit is written.
func (b *builder) check(ctx context.Context) error {
	for i, r := range b.commit.Records {
		if i%1024 == 1023 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.record(i, r); err != nil {
			return err
		}
	}
	return b.putMovers()
}

func (b *builder) record(i int, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		b.blocks.set(r.ID, r.Size)
		if err := b.requireTree(i, r); err != nil {
			return err
		}
		return b.revive(r.ID)
	case *structure.Chunk:
		return nil
	case *structure.Thread:
		return b.thread(r)
	case *structure.Context:
		return b.context(r)
	case *structure.Tip:
		return b.tip(r)
	case *structure.Run:
		return b.run(r)
	case *structure.Span:
		return b.span(r)
	case *structure.SpanSet:
		return b.spanSet(r)
	case *structure.Branch:
		return b.branch(r)
	case *structure.Checkpoint:
		return b.checkpoint(r)
	case *structure.Summary:
		return b.summary(i, r)
	case *structure.Reflog:
		return b.reflog(i, r)
	case *structure.Deletion:
		return b.deletion(r)
	case *structure.Cut:
		return b.cut(r)
	}
	return fmt.Errorf("record %d: %w", i, backend.ErrInvalid)
}

// value marshals a record into memory of its own.
func value(r structure.Record) ([]byte, error) {
	v, err := structure.MarshalRecord(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, backend.ErrInvalid)
	}
	return v, nil
}

func (b *builder) thread(t *structure.Thread) error {
	if t.ID.IsZero() {
		return invalid("thread", t.ID, "no id")
	}
	if !t.Active.IsZero() {
		if err := b.require(b.scratch(tableContext, t.Active[:]), "context", t.Active); err != nil {
			return err
		}
	}
	k := b.slab.key(tableThread, t.ID[:])
	known, err := b.has(k)
	if err != nil {
		return err
	}
	if !known {
		b.counts.threads++
	}
	v, err := value(t)
	b.put(k, v)
	return err
}

func (b *builder) context(c *structure.Context) error {
	if c.ID.IsZero() {
		return invalid("context", c.ID, "no id")
	}
	k := b.slab.key(tableContext, c.ID[:])
	known, maybe := false, false // whether it is there, and may have been
	var was backend.Context
	if _, mine := b.contexts.get(c.ID); mine || b.replay || !b.engine.isNew(c.ID) {
		value, ok, err := b.get(k)
		if err == nil && ok {
			was, err = contextOf(b, c.ID, value)
		}
		if err != nil {
			return err
		}
		known, maybe = ok, true
	}
	if known && !b.replay && (was.Thread != c.Thread || was.Parent != c.Parent || was.Base != c.Base) {
		return &backend.SubjectError{Subject: "context", ID: c.ID.String(), Err: backend.ErrExists, Detail: "under the same id with another thread, parent or base"}
	}
	if err := b.contextRefs(c, known); err != nil {
		return err
	}
	is := tip{span: c.Tip, commit: b.number, at: b.millis}
	if known { // stated anew: that by itself moves nothing
		if was.Tip == is.span {
			is.commit, is.at = was.Moved, was.MovedAt
		}
		b.putTip(c.ID, is)
	} else {
		b.counts.contexts++
		b.created = append(b.created, c.ID)
		if maybe {
			if err := b.remade(c); err != nil {
				return err
			}
		}
	}
	stated := &liveContext{}
	stated.Context.Context = *c
	structure.Own(&stated.Context.Context)
	stated.Moved, stated.MovedAt = is.commit, is.at
	if b.replay {
		b.engine.homes.set(c.ID, c.Thread)
	} else {
		b.contexts.set(c.ID, stated)
	}
	if known {
		start := b.slab.begin()
		b.slab.buf = stated.append(b.slab.buf)
		b.put(k, b.slab.end(start))
	} else if len(b.commit.Records) == 1 { // so nothing here looks for them
		b.later, stated.shared = stated, true
	} else {
		b.slab.begin()
		b.slab.buf = stated.Make(b.slab.buf, func(e index.Entry) { b.put(e.Key, e.Value) })
	}
	return nil
}

// append writes the value of a context as it was stated: since when it stands where its
// record lets it stand, and the record.
func (c *liveContext) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, c.Moved)
	dst = binary.AppendUvarint(dst, uint64(c.MovedAt))
	// It was part of a commit that could be written, or read.
	dst, _ = structure.AppendRecord(dst, &c.Context.Context)
	return dst
}

// Make implements index.Maker, for a context that is new.
func (c *liveContext) Make(memory []byte, put func(index.Entry)) []byte {
	entry := func(table byte, of []byte, value func([]byte) []byte) {
		start := len(memory)
		memory = append(memory, table)
		memory = append(memory, of...)
		memory = append(memory, c.ID[:]...)
		end := len(memory)
		if value != nil {
			memory = value(memory)
		}
		put(index.Entry{Key: memory[start:end:end], Value: memory[end:len(memory):len(memory)]})
	}
	entry(tableMember, c.Thread[:], nil)
	if !c.Parent.IsZero() {
		entry(tableChild, c.Parent[:], nil)
	}
	entry(tableContext, nil, c.append)
	return memory
}

// Count implements index.Maker.
func (c *liveContext) Count() int { return 3 }

// contextRefs requires what a context points at. Of one that is known the parent
// may have been deleted since.
func (b *builder) contextRefs(c *structure.Context, known bool) error {
	if b.replay {
		return nil
	}
	// What a parent points at exists.
	parent := &liveContext{}
	if !c.Parent.IsZero() && !known {
		var err error
		if parent, err = b.contextState(c.Parent); err != nil {
			return err
		}
	}
	if c.Thread != parent.Thread && !c.Thread.IsZero() {
		if err := b.require(b.scratch(tableThread, c.Thread[:]), "thread", c.Thread); err != nil {
			return err
		}
	}
	if !c.Set.IsZero() {
		if err := b.require(b.scratch(tableSpanSet, c.Set[:]), "span set", c.Set); err != nil {
			return err
		}
	}
	if c.Base != parent.Tip {
		if err := b.requireSpan(c.Base); err != nil {
			return err
		}
	}
	if c.Tip == parent.Tip {
		return nil
	}
	return b.requireSpan(c.Tip)
}

func (b *builder) putTip(id structure.ContextID, t tip) {
	k := b.slab.key(tableTip, id[:])
	start := b.slab.begin()
	b.slab.buf = t.append(b.slab.buf)
	b.put(k, b.slab.end(start))
}

func (b *builder) tip(t *structure.Tip) error {
	moved := tip{span: t.Span, commit: b.number, at: b.millis}
	if b.replay {
		b.putTip(t.Context, moved)
		thread, err := b.threadOf(t.Context)
		b.move(thread, mover{context: t.Context})
		return err
	}
	c, err := b.contextState(t.Context)
	if err != nil {
		return err
	}
	b.move(c.Thread, mover{context: t.Context})
	if err := b.requireSpan(t.Span); err != nil {
		return err
	}
	if _, mine := b.contexts.get(t.Context); !mine && b.moved.context == nil {
		b.moved.context, b.moved.to = c, moved
	} else {
		b.contexts.set(t.Context, c.at(moved))
	}
	b.putTip(t.Context, moved)
	return nil
}

// mover is the context of a thread that moved last: zero if that was deleted and made
// again since. gone says that the thread was deleted.
type mover struct {
	context structure.ContextID
	gone    bool
}

// move notes what moved last of a thread in the commit so far.
func (b *builder) move(thread structure.ThreadID, last mover) {
	if !thread.IsZero() {
		b.movers.set(thread, last)
	}
}

// lastMover returns what moved last of a thread as the commit so far leaves it.
func (b *builder) lastMover(thread structure.ThreadID) (last mover, err error) {
	last, ok := b.movers.get(thread)
	if !ok {
		last.context, ok = b.engine.current.movers.get(thread)
	}
	if ok {
		return last, nil
	}
	is, _, err := b.get(b.scratch(tableMoved, thread[:]))
	copy(last.context[:], is)
	return last, err
}

// remade notes that a context was made under an id that may have been that of an earlier
// one of the thread, whose moves are not its own.
func (b *builder) remade(c *structure.Context) error {
	if c.Thread.IsZero() {
		return nil
	}
	last, err := b.lastMover(c.Thread)
	if err == nil && last.context == c.ID {
		b.move(c.Thread, mover{})
	}
	return err
}

// putMovers adds the entries of the contexts that moved last where they are others than
// before. A context that moves again and again adds none.
func (b *builder) putMovers() (err error) {
	b.movers.each(func(thread structure.ThreadID, last mover) {
		if was, known := b.engine.current.movers.get(thread); err != nil || known && !last.gone && was == last.context {
			return
		}
		k := b.slab.key(tableMoved, thread[:])
		if last.gone {
			b.put(k, nil)
			return
		}
		was, ok, getErr := b.get(k)
		if err = getErr; err == nil && !(ok && bytes.Equal(was, last.context[:])) {
			start := b.slab.begin()
			b.slab.buf = append(b.slab.buf, last.context[:]...)
			b.put(k, b.slab.end(start))
		}
	})
	return err
}

// threadOf returns the thread of a context of a commit that is replayed, zero if it has
// none or was collected.
func (b *builder) threadOf(id structure.ContextID) (structure.ThreadID, error) {
	if thread, ok := b.engine.homes.get(id); ok {
		return thread, nil
	}
	c, err := readContext(b, id)
	if errors.Is(err, backend.ErrNotFound) {
		return structure.ThreadID{}, nil
	}
	if err == nil {
		b.engine.homes.set(id, c.Thread)
	}
	return c.Thread, err
}

// contextState returns a context as the commit so far leaves it. It must not be changed.
func (b *builder) contextState(id structure.ContextID) (*liveContext, error) {
	c, ok := b.contexts.get(id)
	if moved := b.moved.context; !ok && moved != nil && moved.ID == id {
		c, ok = moved.at(b.moved.to), true
		b.contexts.set(id, c)
	}
	if !ok && b.expected != nil && b.expected.ID == id {
		c, ok = b.expected, true
	}
	if !ok {
		c, ok = b.engine.current.keep(id)
	}
	if !ok {
		c = &liveContext{}
		var err error
		c.Context, err = readContext(b, id)
		return c, err
	}
	if c == nil {
		return nil, &backend.SubjectError{Subject: "context", ID: id.String(), Err: backend.ErrNotFound}
	}
	return c, nil
}

func (b *builder) run(r *structure.Run) error {
	if r.ID.IsZero() {
		return invalid("run", r.ID, "no id")
	}
	k := b.slab.key(tableRun, r.ID[:])
	if _, mine := b.runs.get(r.ID); !b.replay && (mine || !b.engine.isNewRun(r.ID)) {
		known, err := b.has(k)
		if err == nil && known {
			err = &backend.SubjectError{Subject: "run", ID: r.ID.String(), Err: backend.ErrExists}
		}
		if err != nil {
			return err
		}
	}
	b.counts.runs++
	b.began = append(b.began, r.ID)
	if err := b.requireSpan(r.Parent); err != nil {
		return err
	}
	info := structure.RunInfo{Run: *r}
	if !r.Parent.IsZero() {
		parent, err := b.runInfo(r.Parent.Run)
		if err != nil {
			return err
		}
		info.Depth = parent.Position(r.Parent.Seq)
		if info.Digest, err = b.digest(r.Parent); err != nil {
			return err
		}
	}
	start := b.slab.begin()
	b.slab.buf = appendRun(b.slab.buf, info)
	b.put(k, b.slab.end(start))
	b.put(b.slab.key(tableFork, r.Parent.Run[:], be64(r.Parent.Seq), r.ID[:]), present)
	b.ends.set(r.ID, runEnd{digest: info.Digest})
	b.runs.set(r.ID, info)
	return nil
}

// runInfo returns what is known of a run as the commit so far leaves it.
func (b *builder) runInfo(id structure.RunID) (structure.RunInfo, error) {
	if info, ok := b.runs.get(id); ok {
		return info, nil
	}
	if info, ok := b.engine.runs.get(id); ok {
		return info, nil
	}
	info, err := readRunInfo(b, id)
	if err == nil {
		b.runs.set(id, info)
	}
	return info, err
}

// Get makes the builder a reader of its own state.
func (b *builder) Get(key []byte) ([]byte, bool, error) { return b.get(key) }

// requireSpan refuses the commit unless the span exists; the empty position does.
func (b *builder) requireSpan(r structure.SpanRef) error {
	if b.replay || r.IsZero() {
		return nil
	}
	if end, ok := b.end(r.Run); ok && r.Seq != 0 && r.Seq <= end.seq {
		return nil
	}
	return b.require(spanKey(r), "span", r)
}

// end returns where a run ends when that is known without a lookup.
func (b *builder) end(run structure.RunID) (runEnd, bool) {
	end, ok := b.ends.get(run)
	if !ok {
		end, ok = b.engine.current.ends.get(run)
	}
	return end, ok
}

// digest returns the digest of the history that ends at a span.
func (b *builder) digest(r structure.SpanRef) (structure.Digest, error) {
	if d, ok := b.digests.get(r); ok {
		return d, nil
	}
	if d, ok := b.engine.knownDigest(r); ok {
		return d, nil
	}
	d, err := b.engine.computeDigest(b, r)
	if err == nil {
		b.engine.digests.set(r, d) // where one run starts, others will
	}
	return d, err
}

func (b *builder) span(s *structure.Span) error {
	end, known := b.end(s.Ref.Run)
	if !known {
		var err error
		if end.seq, err = b.findEnd(s.Ref); err != nil {
			return err
		}
	}
	if s.Ref.Seq != end.seq+1 && !b.replay {
		return &backend.SubjectError{Subject: "span", ID: s.Ref.String(), Err: backend.ErrConflict, Detail: fmt.Sprintf("the run ends at %d", end.seq)}
	}
	if !s.Set.IsZero() {
		if err := b.require(b.scratch(tableSpanSet, s.Set[:]), "span set", s.Set); err != nil {
			return err
		}
	}
	if err := b.checkUsages(s); err != nil {
		return err
	}
	if !known || s.Ref.Seq != end.seq+1 {
		var err error
		if end.digest, err = b.parentDigest(s.Ref); err != nil {
			return err
		}
	}
	digest := structure.NextDigest(end.digest, s.Usages)
	b.digests.set(s.Ref, digest)
	b.ends.set(s.Ref.Run, runEnd{seq: s.Ref.Seq, digest: digest})
	return nil
}

// findEnd returns the last place before a new span of a run that nothing was
// added to lately: the place before it if that is where the run ends.
func (b *builder) findEnd(r structure.SpanRef) (uint64, error) {
	if b.replay {
		return r.Seq - 1, nil
	}
	if ok, err := b.has(b.scratch(tableRun, r.Run[:])); err != nil {
		return 0, err
	} else if !ok {
		return 0, &backend.SubjectError{Subject: "span", ID: r.String(), Err: backend.ErrConflict, Detail: "there is no such run"}
	}
	cut, err := b.has(b.scratch(tableCut, r.Run[:]))
	if err == nil && (cut || b.engine.barrier.Load().refuses(r.Run)) {
		err = &backend.SubjectError{Subject: "span", ID: r.String(), Err: backend.ErrConflict, Detail: "the end of the run was collected"}
	}
	if err != nil {
		return 0, err
	}
	s := b.engine.latest()
	defer s.Close()
	last, err := s.lastSpan(r.Run)
	return last.Seq, err
}

func (b *builder) parentDigest(r structure.SpanRef) (structure.Digest, error) {
	if r.Seq == 1 {
		run, err := b.runInfo(r.Run)
		return run.Digest, err
	}
	return b.digest(structure.SpanRef{Run: r.Run, Seq: r.Seq - 1})
}

func (b *builder) checkUsages(s *structure.Span) error {
	if len(s.Usages) == 0 {
		return invalid("span", s.Ref, "no usages")
	}
	for i := range s.Usages {
		u := &s.Usages[i]
		switch u.Kind {
		case structure.MessageUsage, structure.DocumentUsage, structure.AssetUsage:
		default:
			return invalid("span", s.Ref, u.Kind.String())
		}
		b.counts.usages++
		if _, ok := b.blocks.get(u.Content); !ok {
			if err := b.require(b.scratch(tableBlock, u.Content[:hashPrefix]), "block", u.Content); err != nil {
				return err
			}
		}
		if !u.Alias.IsZero() {
			if err := b.alias(u.Alias, s.Ref); err != nil {
				return err
			}
		}
	}
	b.counts.spans++
	return nil
}

func (b *builder) alias(a structure.Alias, r structure.SpanRef) error {
	k := b.slab.key(tableAlias, a[:])
	if known, err := b.has(k); err != nil {
		return err
	} else if known && !b.replay {
		return &backend.SubjectError{Subject: "alias", ID: a.String(), Err: backend.ErrExists}
	}
	b.put(k, appendRef(nil, r))
	return nil
}

// locate adds the entries that say where things are, now that the frame is
// written at f with its records at the offsets.
func (b *builder) locate(f journal.Frame, offsets []int) {
	b.below = b.engine.below.Load()
	if b.packed = f.Position.Segment <= b.below.last; b.number%commitEvery == 1 && !b.packed {
		k := b.slab.key(tableCommit, be64(b.number))
		start := b.slab.begin()
		b.slab.buf = appendPosition(b.slab.buf, f.Position)
		b.put(k, b.slab.end(start))
	}
	usages := uint32(0)
	for i, r := range b.commit.Records {
		at := f.PayloadOffset + int64(offsets[i])
		switch r := r.(type) {
		case *structure.Block:
			b.object(b.slab.key(tableBlock, r.ID[:hashPrefix]), place{frame: f.Position, record: at, size: r.Size})
			b.counts.blocks++
			b.counts.unique += uint64(r.Size)
		case *structure.Chunk:
			b.object(b.slab.key(tableChunk, r.Key[:hashPrefix]), place{frame: f.Position, record: at, size: int64(len(r.Bytes))})
			b.counts.chunks++
		case *structure.Span:
			b.spanEntries(r, f.Position, i, usages)
			usages += uint32(len(r.Usages))
		}
	}
}

// commitEvery is how often a commit's position is kept, to find others from.
const commitEvery = 256

func (b *builder) object(k []byte, p place) {
	if b.packed && p.size <= content.InlineLimit {
		b.below.places.set(contentStart(k), foundPlace{p, b.number})
		return
	}
	start := b.slab.begin()
	b.slab.buf = p.append(b.slab.buf)
	b.put(k, b.slab.end(start))
}

// spanEntries adds the entries of a span: one record of the commit, behind so
// many usages in others.
func (b *builder) spanEntries(s *structure.Span, frame journal.Position, record int, usages uint32) {
	if !b.packed || s.Ref.Seq%digestEvery == 0 {
		b.spanPlace(s.Ref, frame)
	}
	if !s.Set.IsZero() {
		b.put(b.slab.key(tableAlternative, s.Set[:], be64(b.number), be64(uint64(record))), appendRef(nil, s.Ref))
	}
	for i := range s.Usages {
		u := &s.Usages[i]
		if size, ok := b.blocks.get(u.Content); ok {
			b.counts.logical += uint64(size)
			continue
		}
		if v, ok, err := b.get(b.scratch(tableBlock, u.Content[:hashPrefix])); err == nil && ok {
			if p, err := readPlace(v); err == nil {
				b.counts.logical += uint64(p.size)
			}
		}
		b.usage(u.Content, b.number, usages+uint32(i), structure.UsageID{Span: s.Ref, Index: i})
	}
}

func (b *builder) spanPlace(r structure.SpanRef, frame journal.Position) {
	start := b.slab.begin()
	b.slab.buf = append(b.slab.buf, tableSpan)
	b.slab.buf = append(b.slab.buf, r.Run[:]...)
	b.slab.buf = binary.BigEndian.AppendUint64(b.slab.buf, r.Seq)
	k := b.slab.end(start)
	start = b.slab.begin()
	b.slab.buf = appendPosition(b.slab.buf, frame)
	if r.Seq%digestEvery == 0 {
		d, _ := b.digests.get(r)
		b.slab.buf = append(b.slab.buf, d[:]...)
	}
	b.put(k, b.slab.end(start))
}

func invalid(subject string, id fmt.Stringer, why string) error {
	return &backend.SubjectError{Subject: subject, ID: id.String(), Err: backend.ErrInvalid, Detail: why}
}
