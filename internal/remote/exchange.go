package remote

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

// exchange is a request that a server works on.
type exchange struct {
	peer    *peer
	id      uint64
	code    uint8
	body    []byte
	ctx     context.Context
	cancel  context.CancelCauseFunc
	held    *held // the bytes of the request; nil where it was refused
	refused error // why nothing is done
	counted bool  // in peer.handling
	dropped bool  // nobody waits for the answer; Peer.mu guards it
	on      target
	told    time.Duration // when progress was last reported
}

// method is what a server knows of a method.
type method interface {
	number() uint8
	// serve reads arguments and writes the answer.
	serve(x *exchange, in, out *wire) error
}

func byCode(all ...method) map[uint8]method {
	table := make(map[uint8]method, len(all))
	for _, m := range all {
		table[m.number()] = m
	}
	return table
}

// handle answers a request.
func (x *exchange) handle() {
	p := x.peer
	if x.counted {
		defer p.handling.Done()
	}
	if x.code != codeWait {
		p.working <- struct{}{}
		defer func() { <-p.working }()
	}
	out := newBody()
	k := answer
	if err := x.work(out); err != nil {
		out.b, out.err, k = out.b[:headerSize], nil, failed
		failure(out, &err)
	}
	x.body = nil
	x.cancel(nil)
	if x.held != nil {
		p.server.budget.give(x.held)
	}
	p.mu.Lock()
	delete(p.requests, x.id)
	if x.code == codeWait {
		p.waits--
	}
	dropped := x.dropped
	p.mu.Unlock()
	if dropped && x.code != codeApply && x.refused == nil { // whoever cancels a commit may wait for what became of it
		return
	}
	if _, err := p.link.send(context.Background(), k, x.id, out.b); err != nil && p.link.fault() == nil {
		out.b = out.b[:headerSize]
		failure(out, &err)
		_, _ = p.link.send(context.Background(), failed, x.id, out.b)
	}
}

// work does what was asked for. A panic is an error of the request alone.
func (x *exchange) work(out *wire) (err error) {
	defer func() {
		if value := recover(); value != nil {
			x.peer.server.o.Logger.Error("request of another process panicked", "panic", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", ErrPanicked, value)
			if x.code == codeApply {
				err = fmt.Errorf("%w: %w", backend.ErrUncertain, err)
			}
		}
	}()
	if x.refused != nil {
		return x.refused
	}
	in := &wire{b: x.body[1:], reading: true}
	var on, deadline uint64
	in.Uint("target", &on)
	in.Uint("deadline", &deadline)
	if in.err != nil {
		return in.err
	}
	if deadline > 0 {
		left := time.Duration(deadline) - x.peer.server.o.Clock.Now()
		if left <= 0 {
			return context.DeadlineExceeded
		}
		ctx, done := context.WithTimeout(x.ctx, left)
		defer done()
		x.ctx = ctx
	}
	if x.code == codeNext {
		return x.next(in, out)
	}
	m := serving[x.code]
	if m == nil {
		return fmt.Errorf("method %d: %w", x.code, ErrMalformed)
	}
	if x.on, err = x.target(on); err != nil {
		return err
	}
	return m.serve(x, in, out)
}

// target returns what a request is made on.
func (x *exchange) target(on uint64) (target, error) {
	t := target{peer: x.peer, request: x, progress: x.progress}
	if on == 0 {
		t.Reader, t.engine = x.peer.engine, x.peer.engine
		return t, nil
	}
	if x.code >= codeSnapshot {
		return t, fmt.Errorf("method %d of a snapshot: %w", x.code, ErrMalformed)
	}
	x.peer.mu.Lock()
	defer x.peer.mu.Unlock()
	s := x.peer.snapshots[on]
	if s == nil {
		return t, fmt.Errorf("snapshot: %w", backend.ErrExpired)
	}
	t.Reader = s
	return t, nil
}

// progress reports how far a request is.
func (x *exchange) progress(done, total int64) { x.report(x.id, &x.told, done, total) }

func (x *exchange) report(id uint64, told *time.Duration, done, total int64) {
	now := x.peer.server.o.Clock.Now()
	if *told != 0 && now-*told < progressInterval && done < total {
		return
	}
	*told = now
	w := newBody()
	farther(w, howFar{done, total})
	_, _ = x.peer.link.send(context.Background(), progress, id, w.b)
}

func farther(w *wire, f howFar) { far(w, &f) }

// snapshot opens a snapshot, which goes by the number of the request.
func (p *peer) snapshot(ctx context.Context, t target) (uint64, error) {
	s, err := t.engine.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.leaving:
		err = ErrMoved
	case t.request.dropped:
		err = context.Canceled
	case len(p.snapshots) >= maxSnapshots:
		err = fmt.Errorf("%d snapshots at once: %w", maxSnapshots, backend.ErrTooLarge)
	default:
		p.snapshots[t.request.id] = s
		return t.request.id, nil
	}
	_ = s.Close()
	return 0, err
}

func (c call[A, R]) number() uint8 { return c.code }

func (c call[A, R]) serve(x *exchange, in, out *wire) error {
	var a A
	c.args(in, &a)
	if err := in.end(); err != nil {
		return err
	}
	r, err := c.do(x.ctx, x.on, a)
	if err != nil {
		return err
	}
	c.result(out, &r)
	return out.err
}

func (s sequence[A, E]) number() uint8 { return s.code }

func (s sequence[A, E]) serve(x *exchange, in, out *wire) error {
	var a A
	s.args(in, &a)
	if err := in.end(); err != nil {
		return err
	}
	is := &stream{peer: x.peer, id: x.id}
	is.ctx, is.cancel = context.WithCancelCause(x.peer.ctx)
	on := x.on
	on.progress = func(done, total int64) { x.report(is.current, &is.told, done, total) }
	next, stop := iter.Pull2(s.do(is.ctx, on, a))
	is.stop = stop
	is.pull = func(out *wire) (bool, error) {
		e, err, ok := next()
		if ok && err == nil {
			s.element(out, &e)
			err = out.err
		}
		return ok, err
	}
	return is.first(x, out)
}

// stream is a sequence that a client reads.
type stream struct {
	peer   *peer
	id     uint64
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex // held while elements are made
	pull    func(out *wire) (bool, error)
	stop    func()
	ended   bool
	batch   int    // elements of the next answer
	current uint64 // the request that is answered
	told    time.Duration
	idle    func() bool // stops the clock that ends a stream nobody reads
}

// The first answer of a sequence has few elements, because many callers want no more.
const (
	firstBatch = 16
	mostBatch  = 1024
	batchBytes = 256 << 10
)

// The first byte of an answer says what follows its elements.
const (
	sequenceGoesOn = iota
	sequenceEnds
	sequenceFails
)

// first answers the request that begins a sequence.
func (s *stream) first(x *exchange, out *wire) error {
	s.batch = firstBatch
	s.mu.Lock()
	defer s.mu.Unlock()
	goesOn := false
	defer func() {
		if !goesOn { // also where it panics
			s.finish()
		}
	}()
	if goesOn = s.fill(x, out); !goesOn {
		return nil
	}
	var err error
	if goesOn, err = s.peer.keep(x, s); goesOn {
		s.rest()
	}
	return err
}

// keep keeps a sequence that a request has begun, unless nobody will ask for more of it.
func (p *peer) keep(x *exchange, s *stream) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.leaving:
		return false, ErrMoved
	case x.dropped:
		return false, context.Canceled
	case len(p.sequences) >= maxSequences:
		return false, fmt.Errorf("%d sequences at once: %w", maxSequences, backend.ErrTooLarge)
	}
	p.sequences[s.id] = s
	return true, nil
}

// next answers a request for more of a sequence.
func (x *exchange) next(in, out *wire) error {
	var id uint64
	if in.Uint("sequence", &id); in.end() != nil {
		return in.err
	}
	p := x.peer
	p.mu.Lock()
	s, leaving := p.sequences[id], p.leaving
	p.mu.Unlock()
	if s == nil {
		if leaving {
			return ErrMoved
		}
		return fmt.Errorf("sequence: %w", backend.ErrExpired)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("sequence: %w", context.Cause(s.ctx))
	}
	s.idle()
	goesOn := false
	defer func() {
		if !goesOn {
			s.finish()
			p.mu.Lock()
			delete(p.sequences, id)
			p.mu.Unlock()
		}
	}()
	if goesOn = s.fill(x, out); goesOn {
		s.rest()
	}
	return nil
}

// fill writes elements, and reports whether there may be more of them. A request that ends
// ends the sequence.
func (s *stream) fill(x *exchange, out *wire) bool {
	s.current = x.id
	stop := context.AfterFunc(x.ctx, func() { s.cancel(context.Cause(x.ctx)) })
	at := len(out.b)
	end := uint8(sequenceGoesOn)
	out.b = append(out.b, end)
	var why error
	for n := 0; n < s.batch && len(out.b) < batchBytes && end == sequenceGoesOn; n++ {
		before, is := len(out.b), true
		out.Flag("element", &is)
		ok, err := s.pull(out)
		switch {
		case !ok:
			end = sequenceEnds
		case err != nil:
			end, why = sequenceFails, err
		default:
			continue
		}
		out.b, out.err = out.b[:before], nil
	}
	is := false
	out.Flag("element", &is)
	if end == sequenceFails {
		failure(out, &why)
	}
	out.b[at] = end
	s.batch = min(2*s.batch, mostBatch)
	return stop() && end == sequenceGoesOn
}

// rest starts the clock that ends the sequence unless it is asked for more.
func (s *stream) rest() {
	s.idle = s.peer.server.o.Clock.AfterFunc(s.peer.server.o.Idle, func() {
		p := s.peer
		p.mu.Lock()
		delete(p.sequences, s.id)
		p.mu.Unlock()
		s.end(backend.ErrExpired)
	})
}

// end ends a sequence for a reason. It waits for elements that are being made.
func (s *stream) end(why error) {
	s.cancel(why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish()
}

// finish lets go of what the sequence holds. The lock is held.
func (s *stream) finish() {
	if s.ended {
		return
	}
	s.ended = true
	if s.idle != nil {
		s.idle()
	}
	s.stop()
	s.cancel(backend.ErrExpired)
}
