package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

func newPeer(s *Server, conn net.Conn) *peer {
	p := &peer{
		server: s, link: newLink(conn, s.o.WriteTimeout), working: make(chan struct{}, maxWorking), next: make(chan *exchange),
		requests: make(map[uint64]*exchange), sequences: make(map[uint64]*stream), snapshots: make(map[uint64]backend.Snapshot),
		reservations: make(map[uint64]*reservation), answers: space{free: peerAnswers},
	}
	p.inbox = newInbox(conn, p.admission())
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.commits, p.cancelCommits = context.WithCancelCause(context.Background())
	return p
}

// serve greets the client and answers its requests until the connection ends.
func (p *peer) serve() (err error) {
	defer func() {
		p.link.fail(errors.Join(err, errEnded))
		p.end()
	}()
	if err := p.greet(); err != nil {
		return err
	}
	if p.engine, err = p.server.awaitEngine(p); err != nil {
		return err
	}
	for {
		m, err := p.inbox.next()
		if err != nil {
			return err
		}
		switch m.kind {
		case request:
			if err := p.accept(m); err != nil {
				return err
			}
		case cancel:
			p.drop(m.id)
		default:
			return fmt.Errorf("%w: a client sent kind %d", ErrMalformed, m.kind)
		}
	}
}

// greet receives the greeting of the client.
func (p *peer) greet() error {
	stop := p.server.o.Clock.AfterFunc(greetTimeout, func() { p.link.fail(errSilent) })
	defer stop()
	if err := greet(p.link.conn); err != nil {
		return errors.Join(err, p.link.fault())
	}
	m, err := p.inbox.next()
	if err != nil {
		return errors.Join(err, p.link.fault())
	}
	w := &wire{b: m.body, reading: true}
	var who Process
	if process(w, &who); m.kind != hello || w.end() != nil {
		return fmt.Errorf("%w: no greeting", ErrMalformed)
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.who = who
	p.server.heard(p)
	return nil
}

var errEnded = errors.New("the connection has ended")

// accept starts a request.
func (p *peer) accept(m message) (err error) {
	x := &exchange{peer: p, id: m.id, body: m.body, reserved: p.received(m)}
	defer func() {
		if err != nil && x.reserved != nil {
			p.server.budget.release(x.reserved)
		}
	}()
	switch {
	case m.refused:
		x.refused = ErrBusy
	case len(m.body) == 0:
		return fmt.Errorf("%w: empty request", ErrMalformed)
	default:
		x.code = m.body[0]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	isWait := x.code == codeWait
	switch {
	case p.requests[m.id] != nil || p.sequences[m.id] != nil || p.snapshots[m.id] != nil || m.id == 0:
		return fmt.Errorf("%w: the number of a request is in use", ErrMalformed)
	case m.refused && len(p.requests) < maxRequests+maxWaits: // it may be of either kind
	case isWait && p.waits >= maxWaits, !isWait && len(p.requests)-p.waits-p.dropped >= maxRequests:
		return fmt.Errorf("%w: too many requests at once", ErrMalformed)
	case p.dropped >= maxRequests+maxWaits: // they end more slowly than others begin
		x.refused = ErrBusy
	}
	if isWait {
		p.waits++
	}
	base := p.ctx
	if x.code == codeApply {
		base = p.commits
	}
	x.ctx, x.cancel = context.WithCancelCause(base)
	p.requests[m.id] = x
	if p.leaving { // leave may not wait for handling any more
		x.refused = ErrMoved
	} else {
		x.counted = true
		p.handling.Add(1)
	}
	select {
	case p.next <- x:
	default:
		go p.handle(x)
	}
	return nil
}

// handle answers a request, and then others while the goroutine is idle. A new goroutine would have to grow its stack
// first.
func (p *peer) handle(x *exchange) {
	for {
		x.handle()
		select {
		case x = <-p.next:
		case <-p.ctx.Done():
			return
		}
	}
}

// drop ends a request, and the sequence or snapshot that it created.
func (p *peer) drop(id uint64) {
	p.mu.Lock()
	if x := p.requests[id]; x != nil {
		if !x.cancelled {
			p.uncount(x)
			x.cancelled = true
			p.dropped++
		}
		x.cancel(context.Canceled)
	}
	s, snapshot := p.sequences[id], p.snapshots[id]
	delete(p.sequences, id)
	delete(p.snapshots, id)
	counted := s != nil && !p.leaving
	if counted {
		p.handling.Add(1)
	}
	p.mu.Unlock()
	if s != nil {
		go func() {
			s.end(context.Canceled)
			if counted {
				p.handling.Done()
			}
		}()
	}
	if snapshot != nil {
		_ = snapshot.Close()
	}
}

// leave ends the connection because the server closes. Running requests are answered first.
func (p *peer) leave() {
	p.link.endBy(time.Now().Add(closingTimeout))
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.cancel(ErrMoved)
	p.endSequences(ErrMoved)
	p.handling.Wait()
	p.link.fail(ErrMoved)
}

// end releases everything that the client has open.
func (p *peer) end() {
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.cancel(ErrDisconnected)
	p.cancelCommits(ErrDisconnected)
	p.endSequences(ErrDisconnected)
	p.handling.Wait()
	for _, h := range p.reservations {
		p.server.budget.release(h)
	}
	p.mu.Lock()
	snapshots := p.snapshots
	p.snapshots = nil
	p.mu.Unlock()
	for _, s := range snapshots {
		_ = s.Close()
	}
}

func (p *peer) endSequences(why error) {
	p.mu.Lock()
	all := p.sequences
	p.sequences = make(map[uint64]*stream)
	p.mu.Unlock()
	for _, s := range all {
		s.end(why)
	}
}
