package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/yielding"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Apply implements backend.Engine. The costly part, hashing and encoding, is done
// before the lock is taken; under it come the checks, one write to the journal
// and the index entries; the wait for durability comes after it (see line).
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	if err := e.begin(); err != nil {
		return backend.Receipt{}, err
	}
	defer e.end()
	if e.opt.ReadOnly {
		return backend.Receipt{}, fmt.Errorf("store: %w", backend.ErrReadOnly)
	}
	if err := e.index.Throttle(); err != nil {
		return backend.Receipt{}, err
	}
	t := e.turns.Get().(*turn)
	t.ctx, t.o, t.p = ctx, o, preparation{engine: e, source: c}
	receipt, err := e.apply(t)
	e.free(t)
	return receipt, err
}

func (e *Engine) apply(t *turn) (backend.Receipt, error) {
	p := &t.p
	if err := p.prepare(); err != nil {
		return backend.Receipt{}, err
	}
	t.durability = t.o.Durability
	if t.durability == backend.DefaultDurability {
		t.durability = e.opt.Durability
	}
	// A few blocks are mostly new, and asked for after they were encoded: by then the
	// processor has what the filter looks at. Of many, those known are left out first.
	few := p.contents <= fewContents
	if !few {
		if _, err := p.filter(); err != nil {
			return backend.Receipt{}, err
		}
	}
	if err := t.encode(); err != nil {
		return backend.Receipt{}, err
	}
	if few {
		if err := t.filter(); err != nil {
			return backend.Receipt{}, err
		}
	}
	t.number, t.err = 0, nil
	if t.durability == backend.Full {
		e.commitTogether(t)
	} else {
		e.write.Lock()
		e.commit(t)
		e.write.Unlock()
	}
	if t.panicked != nil {
		panic(t.panicked)
	}
	if t.err != nil {
		return backend.Receipt{}, t.err
	}
	return backend.Receipt{Number: t.number, Known: p.known, KnownChunks: p.knownChunks}, nil
}

// turn is a prepared commit that is about to be written. Turns are used again for
// their memory.
type turn struct {
	ctx        context.Context
	p          preparation
	o          backend.Options
	durability backend.Durability

	encoder structure.Encoder
	payload []byte
	offsets []int

	number   uint64
	err      error
	panicked *panicked
}

// panicked is what a commit panicked with, and where. Whoever brought the commit panics
// with it, which may be another than who made it.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// errPanicked is what a store is left with by a commit that panicked: nobody knows what
// it had done by then.
var errPanicked = fmt.Errorf("store: a commit ended in a panic; open the store again: %w", backend.ErrReadOnly)

// fewContents is how many blocks and chunks are few.
const fewContents = 4

func (t *turn) encode() (err error) {
	if t.payload, t.offsets, err = t.encoder.Encode(&t.p.commit); err != nil {
		err = fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	return err
}

// filter leaves out what the store has, and encodes the rest anew if that is less.
func (t *turn) filter() error {
	if changed, err := t.p.filter(); err != nil || !changed {
		return err
	}
	return t.encode()
}

// free lets go of what the caller gave to a turn.
func (e *Engine) free(t *turn) {
	t.ctx, t.o, t.err = nil, backend.Options{}, nil
	t.p.source, t.p.commit.Records, t.p.known, t.p.first = nil, nil, nil, nil
	e.turns.Put(t)
}

// line is where commits of full durability gather, in groups that share a sync. The
// first of a group leads it: when the group before is durable, it writes its own
// commit and those that have gathered, one after the other, until no more come, and
// syncs for all of them. So each commit waits once, and not in turn for a lock and for
// a sync; and nothing is written while a sync runs, which would have to wait for that
// too.
type line struct {
	mu        sync.Mutex
	gathering *group // takes who comes; nil when the next to come begins one
	syncing   *group // was written last and is not durable yet
	free      *group // one that is used again
}

// group is commits that share a sync.
type group struct {
	waiting []*turn // not written yet
	written []*turn
	done    chan struct{} // closed when the group is durable; nil while nobody waits for that
}

// busy reports whether somebody waits for a commit of full durability.
func (l *line) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gathering != nil || l.syncing != nil
}

// giveWay returns what work in the background calls after every step, to let those go on
// who wait for commits of full durability: they wake from each sync, and need a processor
// for a moment. Others are not given way to: what they write is to be packed and folded,
// too.
func (e *Engine) giveWay() func() {
	var y yielding.Yielder
	return func() {
		if e.line.busy() {
			y.Yield()
		}
	}
}

// wait returns what is closed when the group is durable. The line's lock is held.
func (g *group) wait() <-chan struct{} {
	if g.done == nil {
		g.done = make(chan struct{})
	}
	return g.done
}

// commitTogether commits a turn so that it survives power loss, with those of others.
func (e *Engine) commitTogether(t *turn) {
	l := &e.line
	l.mu.Lock()
	if g := l.gathering; g != nil {
		g.waiting = append(g.waiting, t)
		done := g.wait()
		l.mu.Unlock()
		<-done
		return
	}
	g := l.free
	if l.free = nil; g == nil {
		g = &group{}
	}
	g.waiting = append(g.waiting, t)
	l.gathering = g
	if l.syncing != nil {
		before := l.syncing.wait()
		l.mu.Unlock()
		<-before
	} else {
		l.mu.Unlock()
	}
	e.lead(g)
}

// lead writes a group and makes it durable.
func (e *Engine) lead(g *group) {
	l := &e.line
	var last uint64
	for {
		for range 2 {
			runtime.Gosched() // those that are about to join come first
		}
		l.mu.Lock()
		from := len(g.written)
		g.written = append(g.written, g.waiting...)
		clear(g.waiting)
		g.waiting = g.waiting[:0]
		if len(g.written) == from {
			l.gathering, l.syncing = nil, g
			l.mu.Unlock()
			break
		}
		l.mu.Unlock()
		e.write.Lock()
		for _, t := range g.written[from:] {
			if e.commit(t); t.err == nil {
				last = max(last, t.number)
			}
		}
		e.write.Unlock()
	}
	if err := e.journal.Sync(last); err != nil {
		for _, t := range g.written {
			if t.err == nil {
				t.err = fmt.Errorf("commit %d: %w: %w", t.number, backend.ErrUncertain, err)
			}
		}
	}
	l.mu.Lock()
	l.syncing = nil
	done := g.done
	clear(g.written)
	g.written, g.done = g.written[:0], nil
	l.free = g
	l.mu.Unlock()
	if done != nil {
		close(done)
	}
}

// commit writes a turn's commit and makes it visible. The lock on writing is held.
func (e *Engine) commit(t *turn) {
	defer func() {
		if value := recover(); value != nil {
			t.panicked, t.err = &panicked{value, debug.Stack()}, errPanicked
		}
	}()
	if e.halfway {
		t.err = errPanicked
		return
	}
	e.halfway = true
	t.number, t.err = e.commitNow(t)
	e.halfway = false
}

// commitNow is commit, but for panics.
func (e *Engine) commitNow(t *turn) (uint64, error) {
	expected, err := e.expect(t.o)
	if err != nil {
		return 0, err
	}
	p := &t.p
	if p.hasContent() && (e.index.Number() != p.seen || e.barrier.Load() != p.behind) {
		// Another commit may have brought the same content in the meantime, or a
		// collection may be about to take out what was known.
		if err := t.filter(); err != nil {
			return 0, err
		}
	}
	if len(p.commit.Records) == 0 {
		return e.index.Number(), nil // all of it is known content
	}
	e.growFilter()
	number := e.index.Number() + 1
	b := &e.builder
	b.begin(e, &p.commit, number, false)
	b.expected = expected
	if err := b.check(t.ctx); err != nil {
		return 0, err
	}
	frame, err := e.journal.Append(t.payload, t.durability == backend.Normal)
	if err != nil {
		return 0, err
	}
	b.locate(frame, t.offsets)
	e.publish(b, frame)
	if frame.Position.Offset == journal.FirstOffset { // it sealed the segment before
		e.packLater()
	}
	return number, nil
}

// expect compares the state with what a commit was made for. It returns the last
// context whose tip it looked at, if any.
func (e *Engine) expect(o backend.Options) (c *liveContext, err error) {
	for _, expect := range o.Tips {
		if c, err = e.contextNow(expect.Context); err != nil {
			return nil, err
		}
		if c.Tip != expect.Tip {
			return nil, &backend.TipError{Context: expect.Context, Expected: expect.Tip, Actual: c.Tip}
		}
	}
	for _, expect := range o.Threads {
		if err := expectEntry(e, key(tableThread, expect.ID[:]), "thread", expect.ID, expect.Was); err != nil {
			return nil, err
		}
	}
	for _, expect := range o.Branches {
		if err := expectEntry(e, branchKey(expect.Thread, expect.Name), "branch", quoted(expect.Name), expect.Was); err != nil {
			return nil, err
		}
	}
	for _, expect := range o.Checkpoints {
		if err := expectEntry(e, checkpointKey(expect.Thread, expect.Name), "checkpoint", quoted(expect.Name), expect.Was); err != nil {
			return nil, err
		}
	}
	for _, expect := range o.Contexts {
		if err := e.expectContext(expect); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// quoted is a name in an error.
type quoted string

func (q quoted) String() string { return fmt.Sprintf("%.80q", string(q)) }

// expectEntry compares an entry of the index, which is a record, with what it was to be.
func expectEntry[R interface {
	comparable
	structure.Record
}](e *Engine, k []byte, subject string, id fmt.Stringer, was R) error {
	is, _, err := e.index.Get(k)
	if err != nil {
		return err
	}
	return asExpected(subject, id, was, is)
}

func (e *Engine) expectContext(expect backend.ExpectContext) error {
	c, err := e.contextNow(expect.ID)
	if errors.Is(err, backend.ErrNotFound) {
		return asExpected("context", expect.ID, expect.Was, nil)
	}
	if err != nil {
		return err
	}
	is, err := structure.MarshalRecord(&c.Context.Context)
	if err != nil {
		return err
	}
	return asExpected("context", expect.ID, expect.Was, is)
}

// contextNow returns a context for who has the lock on writing. It must not be changed.
func (e *Engine) contextNow(id structure.ContextID) (*liveContext, error) {
	if c, ok := e.current.contexts.get(id); ok {
		return c, nil
	}
	c := &liveContext{}
	var err error
	c.Context, err = readContext(e.index, id)
	return c, err
}

// asExpected compares what a subject was to be, nil for not there, with the record that it is.
func asExpected[R interface {
	comparable
	structure.Record
}](subject string, id fmt.Stringer, was R, is []byte) error {
	var absent R
	refuse := func(why error, detail string) error {
		return &backend.SubjectError{Subject: subject, ID: id.String(), Err: why, Detail: detail}
	}
	switch {
	case was == absent && is == nil:
		return nil
	case was == absent:
		return refuse(backend.ErrExists, "")
	case is == nil:
		return refuse(backend.ErrNotFound, "")
	}
	b, err := structure.MarshalRecord(was)
	if err == nil && !bytes.Equal(b, is) {
		err = refuse(backend.ErrConflict, "it has changed")
	}
	return err
}

// preparation is a commit without the content that the store already has.
type preparation struct {
	engine      *Engine
	source      *structure.Commit
	commit      structure.Commit
	contents    int    // blocks and chunks in the source
	seen        uint64 // commit as of which it was filtered
	behind      *barrier
	known       []content.ID
	knownChunks int
	first       map[content.ID]int // of each id or key, the first record: see earlier
}

func (p *preparation) hasContent() bool { return p.contents > 0 }

// prepare checks the content of a commit.
func (p *preparation) prepare() error {
	if len(p.source.Records) == 0 {
		return fmt.Errorf("commit without records: %w", backend.ErrInvalid)
	}
	p.commit.Records = p.source.Records
	p.commit.Time = p.source.Time
	if p.commit.Time.IsZero() {
		p.commit.Time = time.Now()
	}
	for i, r := range p.source.Records {
		switch r := r.(type) {
		case nil:
			return fmt.Errorf("record %d is nil: %w", i, backend.ErrInvalid)
		case *structure.Block:
			p.contents++
			p.engine.filter.expectContent(r.ID[:])
			if r.Gone() && erasedAfter(p.source.Records[i:], r.ID) {
				continue
			}
			if err := checkBlock(r); err != nil {
				return err
			}
		case *structure.Chunk:
			p.contents++
			p.engine.filter.expectContent(r.Key[:])
			if content.KeyOf(r.Bytes) != r.Key {
				return invalid("chunk", r.Key, "key does not match the bytes")
			}
		}
	}
	return nil
}

// erasedAfter reports whether records erase content.
func erasedAfter(records []structure.Record, id content.ID) bool {
	return slices.ContainsFunc(records, func(r structure.Record) bool {
		d, ok := r.(*structure.Deletion)
		return ok && d.Subject == structure.KindBlock && d.Content == id
	})
}

func checkBlock(b *structure.Block) error {
	if b.Tree.Size != 0 {
		if b.Body != nil || b.Size != b.Tree.Size || b.ID.IsZero() {
			return invalid("block", b.ID, "tree and body disagree")
		}
		return nil
	}
	if b.Summed() && b.Size == int64(len(b.Body)) {
		return nil
	}
	if b.Size != int64(len(b.Body)) || b.ID != content.Sum(b.Body) {
		return invalid("block", b.ID, "id or size does not match the body")
	}
	return nil
}

// filter leaves out the content that the store has, or that the commit brings
// twice, and reports whether that changed what is left.
func (p *preparation) filter() (changed bool, err error) {
	before := p.commit.Records
	p.seen, p.behind = p.engine.index.Number(), p.engine.barrier.Load()
	p.known, p.knownChunks = p.known[:0], 0
	if !p.hasContent() {
		p.commit.Records = p.source.Records
		return false, nil
	}
	kept, dropped := p.source.Records, false
	drop := func(i int) {
		if !dropped {
			kept, dropped = append(make([]structure.Record, 0, len(kept)), kept[:i]...), true
		}
	}
	var gone []content.ID       // erased by a record before
	var left []*structure.Block // left out
	for i, r := range p.source.Records {
		known := false
		switch r := r.(type) {
		case *structure.Block:
			if known = p.earlier(i, r); !known {
				if known, err = p.engine.storeHas(r.ID); err != nil {
					return false, err
				}
			}
			if at := slices.Index(gone, r.ID); at >= 0 {
				known, gone = false, slices.Delete(gone, at, at+1)
			}
			if known && r.Gone() {
				return false, &backend.SubjectError{Subject: "block", ID: r.ID.String(), Err: backend.ErrExists, Detail: "it was not erased here"}
			}
			if known {
				p.known, left = append(p.known, r.ID), append(left, r)
			}
		case *structure.Chunk:
			if known = p.earlier(i, r); !known {
				if known, err = p.engine.storeHasChunk(r.Key); err != nil {
					return false, err
				}
			}
			if known {
				p.knownChunks++
			}
		case *structure.Deletion:
			if r.Subject == structure.KindBlock && !slices.Contains(gone, r.Content) {
				gone = append(gone, r.Content)
			}
		}
		if known {
			drop(i)
		} else if dropped {
			kept = append(kept, r)
		}
	}
	keepOrigins(kept, left)
	p.commit.Records = kept
	return !slices.Equal(kept, before), nil
}

// earlier reports whether the source brings the same content before record i.
func (p *preparation) earlier(i int, r structure.Record) bool {
	if p.contents == 1 {
		return false
	}
	if p.first == nil {
		p.first = make(map[content.ID]int, p.contents)
		for k, r := range p.source.Records {
			id, ok := hashOf(r)
			if _, known := p.first[id]; ok && !known {
				p.first[id] = k
			}
		}
	}
	id, _ := hashOf(r)
	return p.first[id] < i
}

// hashOf returns the id or key of content; the two are hashes of different kinds
// and do not meet.
func hashOf(r structure.Record) (content.ID, bool) {
	switch r := r.(type) {
	case *structure.Block:
		return r.ID, true
	case *structure.Chunk:
		return content.ID(r.Key), true
	}
	return content.ID{}, false
}

// keepOrigins gives usages that leave type and origin to a block of the commit
// what that block says, if it was left out for the store has it from elsewhere.
func keepOrigins(kept []structure.Record, left []*structure.Block) {
	if len(left) == 0 {
		return
	}
	offered := make(map[content.ID]*structure.Block, len(left))
	for _, b := range left {
		if offered[b.ID] == nil {
			offered[b.ID] = b
		}
	}
	for i, r := range kept {
		if b, ok := r.(*structure.Block); ok {
			delete(offered, b.ID)
			continue
		}
		if s, ok := r.(*structure.Span); ok {
			kept[i] = withOrigins(s, offered)
		}
	}
}

// withOrigins returns the span, or a copy whose usages say what they left to the
// blocks offered.
func withOrigins(s *structure.Span, offered map[content.ID]*structure.Block) *structure.Span {
	own := s
	for i := range s.Usages {
		b := offered[s.Usages[i].Content]
		if b == nil {
			continue
		}
		if own == s {
			own = &structure.Span{Ref: s.Ref, Set: s.Set, Usages: slices.Clone(s.Usages)}
		}
		u := &own.Usages[i]
		if u.Type == "" {
			u.Type = b.Type
		}
		if u.Origin == nil {
			origin := b.Origin
			u.Origin = &origin
		}
	}
	return own
}
