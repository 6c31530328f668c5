package remote

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

// handle answers a request.
func (x *exchange) handle() {
	p := x.peer
	if x.counted {
		defer p.handling.Done()
	}
	space := answerSpace{peer: p}
	defer func() { space.resize(0) }()
	var err error
	if !isSmall(x.code) && x.refused == nil {
		err = space.begin(x.ctx)
	}
	if x.code != codeWait {
		p.working <- struct{}{}
		defer func() { <-p.working }()
	}
	out := newBody()
	k := answer
	if err == nil {
		err = x.work(out)
	}
	if err != nil {
		out.b, out.err, k = out.b[:headerSize], nil, failed
		failure(out, &err)
	}
	space.resize(len(out.b))
	x.body = nil
	x.cancel(nil)
	if x.reserved != nil {
		p.server.budget.release(x.reserved)
	}
	p.mu.Lock()
	delete(p.requests, x.id)
	p.uncount(x)
	cancelled := x.cancelled
	if p.leaving && x.code == codeApply {
		p.link.endBy(time.Now().Add(closingTimeout))
	}
	p.mu.Unlock()
	if cancelled && x.code != codeApply && x.refused == nil { // a client that cancels a commit may still wait for its outcome
		return
	}
	if _, err := p.link.send(context.Background(), k, x.id, out.b); err != nil && p.link.fault() == nil {
		out.b = out.b[:headerSize]
		failure(out, &err)
		_, _ = p.link.send(context.Background(), failed, x.id, out.b)
	}
}

// work calls the method. A panic becomes an error of this request only.
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
	var snapshot, deadline uint64
	in.Uint("target", &snapshot)
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
	if x.receiver, err = x.resolve(snapshot); err != nil {
		return err
	}
	return m.serve(x, in, out)
}

// resolve returns the receiver of a request: a snapshot by its number, or the current state for 0.
func (x *exchange) resolve(snapshot uint64) (receiver, error) {
	t := receiver{peer: x.peer, request: x, progress: x.progress}
	if snapshot == 0 {
		t.Reader, t.engine = x.peer.engine, x.peer.engine
		return t, nil
	}
	if x.code >= codeSnapshot {
		return t, fmt.Errorf("method %d of a snapshot: %w", x.code, ErrMalformed)
	}
	x.peer.mu.Lock()
	defer x.peer.mu.Unlock()
	s := x.peer.snapshots[snapshot]
	if s == nil {
		return t, fmt.Errorf("snapshot: %w", backend.ErrExpired)
	}
	t.Reader = s
	return t, nil
}

func (x *exchange) progress(done, total int64) { x.report(x.id, &x.reported, done, total) }

func (x *exchange) report(id uint64, reported *time.Duration, done, total int64) {
	now := x.peer.server.o.Clock.Now()
	if *reported != 0 && now-*reported < progressInterval && done < total {
		return
	}
	*reported = now
	w := newBody()
	walkCounts(w, &counts{done, total})
	_, _ = x.peer.link.send(context.Background(), progress, id, w.b)
}

func (c unaryMethod[A, R]) number() uint8 { return c.code }

func (c unaryMethod[A, R]) serve(x *exchange, in, out *wire) error {
	var a A
	c.args(in, &a)
	if err := in.end(); err != nil {
		return err
	}
	r, err := c.do(x.receiver, x.ctx, a)
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
	st := &stream{peer: x.peer, id: x.id, batch: firstBatch}
	st.ctx, st.cancel = context.WithCancelCause(x.peer.ctx)
	on := x.receiver
	on.progress = func(done, total int64) { x.report(st.request, &st.reported, done, total) }
	next, stop := iter.Pull2(s.do(on, st.ctx, a))
	st.stop = stop
	st.pull = func(out *wire) (bool, error) {
		e, err, ok := next()
		if ok && err == nil {
			s.element(out, &e)
			err = out.err
		}
		return ok, err
	}
	if err := x.peer.keep(x, st); err != nil {
		st.end(err)
		return err
	}
	return st.answer(x, out)
}

// The first answer of a sequence has few elements, because many callers need no more.
const (
	firstBatch = 16
	maxBatch   = 1024
	batchBytes = 256 << 10
)

// The first byte of an answer tells what follows its elements.
const (
	sequenceContinues = iota
	sequenceEnds
	sequenceFails
)

// keep registers a stream for further reading, unless the client has cancelled it.
func (p *peer) keep(x *exchange, s *stream) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.leaving:
		return ErrMoved
	case x.cancelled:
		return context.Canceled
	case len(p.sequences) >= maxSequences:
		return fmt.Errorf("%d sequences at once: %w", maxSequences, backend.ErrTooLarge)
	}
	p.sequences[s.id] = s
	return nil
}

// forget removes an ended stream.
func (p *peer) forget(s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sequences, s.id)
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
	switch {
	case s != nil:
		return s.answer(x, out)
	case leaving:
		return ErrMoved
	}
	return fmt.Errorf("sequence: %w", backend.ErrExpired)
}

// answer writes the next elements as the answer to a request. The stream ends if there are no more, or if producing
// them panics.
func (s *stream) answer(x *exchange, out *wire) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("sequence: %w", context.Cause(s.ctx))
	}
	if s.stopIdle != nil {
		s.stopIdle()
	}
	continues := false
	defer func() {
		if !continues {
			s.finish()
			s.peer.forget(s)
		}
	}()
	if continues = s.fill(x, out); continues {
		s.startIdle()
	}
	return nil
}

// fill writes elements, and reports whether there may be more. If the request is cancelled, the stream ends.
func (s *stream) fill(x *exchange, out *wire) bool {
	s.request = x.id
	stop := context.AfterFunc(x.ctx, func() { s.cancel(context.Cause(x.ctx)) })
	at := len(out.b)
	end := uint8(sequenceContinues)
	out.b = append(out.b, end)
	var why error
	for n := 0; n < s.batch && len(out.b) < batchBytes && end == sequenceContinues; n++ {
		before, more := len(out.b), true
		out.Flag("element", &more)
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
	more := false
	out.Flag("element", &more)
	if end == sequenceFails {
		failure(out, &why)
	}
	out.b[at] = end
	s.batch = min(2*s.batch, maxBatch)
	return stop() && end == sequenceContinues
}

// startIdle starts the timer that ends the stream unless the client asks for more.
func (s *stream) startIdle() {
	s.stopIdle = s.peer.server.o.Clock.AfterFunc(s.peer.server.o.Idle, func() {
		s.peer.forget(s)
		s.end(backend.ErrExpired)
	})
}

// end ends a stream and records the reason. It waits for an answer that is being written.
func (s *stream) end(why error) {
	s.cancel(why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish()
}

// finish releases the resources of the stream. s.mu must be held.
func (s *stream) finish() {
	if s.ended {
		return
	}
	s.ended = true
	if s.stopIdle != nil {
		s.stopIdle()
	}
	s.stop()
	s.cancel(backend.ErrExpired)
}

// uncount removes a request from those that are counted. p.mu must be held.
func (p *peer) uncount(x *exchange) {
	switch {
	case x.cancelled:
		p.dropped--
	case x.code == codeWait:
		p.waits--
	}
}
