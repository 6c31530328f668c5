package embedded

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
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
	if o.Once != nil {
		if err := o.Once.Valid(); err != nil {
			return backend.Receipt{}, err
		}
	}
	if err := e.index.Throttle(); err != nil {
		return backend.Receipt{}, err
	}
	t := e.turns.Get().(*turn)
	t.engine, t.ctx, t.o = e, ctx, o
	receipt, err := e.apply(t, c)
	e.free(t)
	return receipt, err
}

func (e *Engine) apply(t *turn, c *structure.Commit) (backend.Receipt, error) {
	p := &t.p
	if err := p.Begin(c); err != nil {
		return backend.Receipt{}, err
	}
	t.durability = t.o.Durability
	if t.durability == backend.DefaultDurability {
		t.durability = e.opt.Durability
	}
	if _, err := t.leaveOut(); err != nil {
		return backend.Receipt{}, err
	}
	if err := t.encode(); err != nil {
		return backend.Receipt{}, err
	}
	t.at, t.repeated, t.err = backend.Cursor{}, false, nil
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
	if t.repeated {
		return backend.Receipt{Cursor: t.at, Repeated: true}, nil
	}
	return backend.Receipt{Cursor: t.at, Known: p.Known, KnownChunks: p.KnownChunks}, nil
}

// turn is a prepared commit that is about to be written. Turns are used again for
// their memory.
type turn struct {
	engine     *Engine
	ctx        context.Context
	p          judge.Preparation
	o          backend.Options
	durability backend.Durability

	seen   uint64 // commit as of which known content was left out
	behind *barrier

	encoder structure.Encoder
	payload []byte
	offsets []int

	at       backend.Cursor
	repeated bool // the commit is that of an earlier attempt
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

func (t *turn) encode() (err error) {
	if t.payload, t.offsets, err = t.encoder.Encode(&t.p.Commit); err != nil {
		err = fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	return err
}

// filter leaves out what the store has, and encodes the rest anew if that is less.
func (t *turn) filter() error {
	if changed, err := t.leaveOut(); err != nil || !changed {
		return err
	}
	return t.encode()
}

func (t *turn) leaveOut() (changed bool, err error) {
	t.seen, t.behind = t.engine.index.Number(), t.engine.barrier.Load()
	return t.p.LeaveOut((*stock)(t.engine))
}

// free lets go of what the caller gave to a turn.
func (e *Engine) free(t *turn) {
	t.engine, t.ctx, t.o, t.err, t.behind = nil, nil, backend.Options{}, nil, nil
	t.p.Release()
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
				last = max(last, t.at.Number)
			}
		}
		e.write.Unlock()
	}
	if err := e.journal.Sync(last); err != nil {
		for _, t := range g.written {
			if t.err == nil {
				t.err = fmt.Errorf("commit %d: %w: %w", t.at.Number, backend.ErrUncertain, err)
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
	t.at, t.err = e.commitNow(t)
	e.halfway = false
}

// commitNow is commit, but for panics.
func (e *Engine) commitNow(t *turn) (at backend.Cursor, err error) {
	if t.o.Once != nil {
		if at, err = e.repeated(t.o.Once); err != nil || at.Number > 0 {
			t.repeated = true
			return at, err
		}
	}
	number := e.index.Number() + 1
	e.state.Begin(number, false)
	if err := judge.Expect(&e.state, t.o); err != nil {
		return at, err
	}
	p := &t.p
	if p.Contents > 0 && (e.index.Number() != t.seen || e.barrier.Load() != t.behind) {
		// Another commit may have brought the same content in the meantime, or a
		// collection may be about to take out what was known.
		if err := t.filter(); err != nil {
			return at, err
		}
	}
	if len(p.Commit.Records) == 0 {
		return read.CursorOf(e.index.State()), nil // all of it is known content
	}
	e.growFilter()
	p.Commit.Number = number
	defer e.judge.Release()
	if err := e.decide(t.ctx, &p.Commit, false); err != nil {
		return at, err
	}
	if err := e.sequence(t, number); err != nil {
		return at, err
	}
	frame, err := e.journal.Append(t.payload, e.onceWrite(t.o.Once), t.durability == backend.Normal)
	if err != nil {
		return at, err
	}
	e.builder.Locate(frame, t.offsets, e.below.Load())
	e.request(&e.builder, frame)
	e.publish(&p.Commit, frame)
	if frame.Position.Offset == journal.FirstOffset { // it sealed the segment before
		e.packLater()
	}
	return backend.Cursor{Number: number, ID: e.id}, nil
}
