package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

// ServerOptions configure a server. A zero field means its default.
type ServerOptions struct {
	// Idle is how long a sequence that the client does not read stays open. Default 30 s.
	Idle time.Duration
	// WriteTimeout is how long the server waits for a client to receive a frame, or to send the rest of a message.
	// Default 30 s.
	WriteTimeout time.Duration
	Clock        Clock
	// Logger reports panics; nil discards.
	Logger *slog.Logger
}

const (
	idle         = 30 * time.Second
	writeTimeout = 30 * time.Second
	// closingTimeout is how long a closing server waits for clients to receive their answers, counted from the last
	// commit.
	closingTimeout = 250 * time.Millisecond
	// greetTimeout is how long a server waits for a greeting.
	greetTimeout = 5 * time.Second
	// progressInterval is the minimum time between two reports of progress.
	progressInterval = 100 * time.Millisecond
	// heartbeat is the maximum time between two messages to a client that waits for the store to be opened.
	heartbeat = time.Second
)

// Limits for each client. The server disconnects a client that exceeds a limit of requests.
const (
	maxRequests  = 1024
	maxWaits     = 4096
	maxSequences = 4096
	maxSnapshots = 1024
	// maxGreeting limits the connections that have not sent a greeting. A further connection ends the oldest one.
	maxGreeting = 256
	// maxWorking limits the requests of a client that are executed at once, except waits.
	maxWorking = 256
)

// Server serves an engine on connections. It does not close the engine.
type Server struct {
	o       ServerOptions
	mu      sync.Mutex
	opened  counts         // progress of opening the store
	changed chan struct{}  // closed and replaced when opened, engine or closing changes
	engine  backend.Engine // nil until Open
	store   Store
	closing bool
	peers   map[*peer]struct{}
	silent  []*peer        // peers that have not sent a greeting, the oldest first
	serving sync.WaitGroup // calls of Serve
	budget  budget
	answers space
}

// NewServer returns a server. Connections wait until Open is called.
func NewServer(o ServerOptions) *Server {
	if o.Idle == 0 {
		o.Idle = idle
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = writeTimeout
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o, peers: make(map[*peer]struct{}), changed: make(chan struct{}), answers: space{free: totalAnswers}}
}

// Progress reports how much of the store was read while it is being opened. It is sent to the clients that wait for
// the store.
func (s *Server) Progress(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = counts{done, total}
	s.change()
}

// change wakes connections that wait for the engine. s.mu must be held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Open starts serving an engine.
func (s *Server) Open(e backend.Engine) {
	description := describe(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine, s.store = e, description
	s.change()
}

// Guests returns the processes that are connected.
func (s *Server) Guests() []Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Process
	for p := range s.peers {
		if p.who != (Process{}) {
			all = append(all, p.who)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return a.PID - b.PID })
	return all
}

// Serve serves a connection until it ends.
func (s *Server) Serve(conn net.Conn) error {
	p := newPeer(s, conn)
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		_ = conn.Close()
		return ErrMoved
	}
	s.peers[p] = struct{}{}
	if len(s.silent) == maxGreeting {
		s.silent[0].link.fail(errSilent)
		s.silent = slices.Delete(s.silent, 0, 1)
	}
	s.silent = append(s.silent, p)
	s.serving.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.peers, p)
		s.heard(p)
		s.mu.Unlock()
		s.serving.Done()
	}()
	return p.serve()
}

// heard removes a peer from those that have not sent a greeting. s.mu must be held.
func (s *Server) heard(p *peer) {
	if i := slices.Index(s.silent, p); i >= 0 {
		s.silent = slices.Delete(s.silent, i, i+1)
	}
}

// errSilent ends a connection without a greeting.
var errSilent = errors.New("no greeting")

// Close ends all connections. Running commits are finished first. Other unanswered requests fail with ErrMoved. Close
// does not wait for clients that do not receive their answers.
func (s *Server) Close() {
	s.mu.Lock()
	s.closing = true
	s.change()
	peers := make([]*peer, 0, len(s.peers))
	for p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range peers {
		all.Go(p.leave)
	}
	all.Wait()
	s.serving.Wait()
}

// awaitEngine waits until the engine is open. Meanwhile it reports progress to the client.
func (s *Server) awaitEngine(p *peer) (backend.Engine, error) {
	var reported time.Duration
	for {
		s.mu.Lock()
		engine, description, opened, changed, closing := s.engine, s.store, s.opened, s.changed, s.closing
		s.mu.Unlock()
		w := newBody()
		switch {
		case closing:
			err := error(ErrMoved)
			failure(w, &err)
			_, _ = p.link.send(context.Background(), failed, 0, w.b)
			return nil, err
		case engine != nil:
			store(w, &description)
			_, err := p.link.send(context.Background(), welcome, 0, w.b)
			return engine, err
		}
		if now := s.o.Clock.Now(); reported == 0 || now-reported >= progressInterval {
			reported = now
			walkCounts(w, &opened)
			if _, err := p.link.send(context.Background(), opening, 0, w.b); err != nil {
				return nil, err
			}
		}
		alive := make(chan struct{})
		stop := s.o.Clock.AfterFunc(heartbeat, func() { close(alive) })
		select {
		case <-changed:
		case <-alive:
		case <-p.ctx.Done():
			stop()
			return nil, context.Cause(p.ctx)
		}
		stop()
	}
}

// peer is the connection of a client.
type peer struct {
	server *Server
	link   *link
	inbox  *inbox
	who    Process
	engine backend.Engine
	ctx    context.Context // of requests other than commits; cancelled when the connection ends
	cancel context.CancelCauseFunc
	// commits is the context of commits. Closing the server does not end it.
	commits       context.Context
	cancelCommits context.CancelCauseFunc
	working       chan struct{}
	next          chan *exchange // requests for idle goroutines
	handling      sync.WaitGroup
	reservations  map[uint64]*reservation // of messages being received
	bytes         int                     // of requests; budget.mu guards it
	answers       space

	mu        sync.Mutex
	leaving   bool
	requests  map[uint64]*exchange
	waits     int
	sequences map[uint64]*stream
	snapshots map[uint64]backend.Snapshot
}

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
	case isWait && p.waits >= maxWaits, !isWait && len(p.requests)-p.waits >= maxRequests:
		return fmt.Errorf("%w: too many requests at once", ErrMalformed)
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
		x.cancelled = true
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
