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

// ServerOptions configure a server. The zero value of each field is a default.
type ServerOptions struct {
	// Idle is for how long a sequence stays open that nobody asks for more. Default 30 s.
	Idle time.Duration
	// WriteTimeout is for how long a client may take no bytes. Default 30 s.
	WriteTimeout time.Duration
	Clock        Clock
	// Logger reports panics; nil discards.
	Logger *slog.Logger
}

const (
	idle         = 30 * time.Second
	writeTimeout = 30 * time.Second
	// closingTimeout is writeTimeout while a server closes.
	closingTimeout = time.Second
	// progressInterval is the least time between two reports of progress.
	progressInterval = 100 * time.Millisecond
	// heartbeat is the most time between two messages to a client that waits for the store to
	// be opened.
	heartbeat = time.Second
)

// Limits on what a client has at a server at once. A client keeps to them; the connection of
// one that does not is ended.
const (
	maxRequests  = 1024
	maxWaits     = 4096
	maxSequences = 4096
	maxSnapshots = 1024
	// maxWorking is how many requests of a connection are worked on at once, waits excepted.
	maxWorking = 256
)

// Server serves an engine on connections. It does not close the engine.
type Server struct {
	o    ServerOptions
	mu   sync.Mutex
	far  howFar
	turn chan struct{} // closed and replaced when far changes
	// engine is nil until Open.
	engine  backend.Engine
	store   Store
	closing bool
	peers   map[*peer]struct{}
	serving sync.WaitGroup // connections
	budget  budget
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
	return &Server{o: o, peers: make(map[*peer]struct{}), turn: make(chan struct{})}
}

// Progress says how much of the store was read while it is opened. Clients that connect are
// told.
func (s *Server) Progress(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.far = howFar{done, total}
	s.change()
}

// change wakes connections that wait for the engine. The lock is held.
func (s *Server) change() {
	close(s.turn)
	s.turn = make(chan struct{})
}

// Open begins to serve an engine.
func (s *Server) Open(e backend.Engine) {
	is := describe(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine, s.store = e, is
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
	s.serving.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.peers, p)
		s.mu.Unlock()
		s.serving.Done()
	}()
	return p.serve()
}

// Close ends all connections. Commits that were begun are finished first. Everything else that
// clients asked for, and that has no answer yet, ends with ErrMoved.
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

// awaitEngine returns the engine once it is open, and tells the client meanwhile how far that is.
func (s *Server) awaitEngine(p *peer) (backend.Engine, error) {
	var told time.Duration
	for {
		s.mu.Lock()
		engine, is, far, turn, closing := s.engine, s.store, s.far, s.turn, s.closing
		s.mu.Unlock()
		w := newBody()
		switch {
		case closing:
			err := error(ErrMoved)
			failure(w, &err)
			_, _ = p.link.send(context.Background(), failed, 0, w.b)
			return nil, err
		case engine != nil:
			store(w, &is)
			_, err := p.link.send(context.Background(), welcome, 0, w.b)
			return engine, err
		}
		if now := s.o.Clock.Now(); told == 0 || now-told >= progressInterval {
			told = now
			farther(w, far)
			if _, err := p.link.send(context.Background(), opening, 0, w.b); err != nil {
				return nil, err
			}
		}
		alive := make(chan struct{})
		stop := s.o.Clock.AfterFunc(heartbeat, func() { close(alive) })
		select {
		case <-turn:
		case <-alive:
		case <-p.ctx.Done():
			stop()
			return nil, context.Cause(p.ctx)
		}
		stop()
	}
}

// peer is a client of a server.
type peer struct {
	server *Server
	link   *link
	inbox  *inbox
	who    Process
	engine backend.Engine
	ctx    context.Context // of everything but commits; ends with the connection
	cancel context.CancelCauseFunc
	// commits is the context of commits, which closing the server does not end.
	commits       context.Context
	cancelCommits context.CancelCauseFunc
	working       chan struct{}
	next          chan *exchange // for an idle goroutine
	handling      sync.WaitGroup
	held          map[uint64]*held // messages that are being received
	bytes         int              // of requests, as the budget counts them; its lock guards it

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
		held: make(map[uint64]*held),
	}
	p.inbox = newInbox(conn, p.admission())
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	p.commits, p.cancelCommits = context.WithCancelCause(context.Background())
	return p
}

// serve greets the client and answers its requests until the connection ends.
func (p *peer) serve() (err error) {
	defer func() {
		p.link.breaks(errors.Join(err, errEnded))
		p.end()
	}()
	if err := greet(p.link.conn); err != nil {
		return err
	}
	m, err := p.inbox.next()
	if err != nil {
		return err
	}
	w := &wire{b: m.body, reading: true}
	var who Process
	if process(w, &who); m.kind != hello || w.end() != nil {
		return fmt.Errorf("%w: no greeting", ErrMalformed)
	}
	p.server.mu.Lock()
	p.who = who
	p.server.mu.Unlock()
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

var errEnded = errors.New("the connection has ended")

// accept begins to work on a request.
func (p *peer) accept(m message) (err error) {
	x := &exchange{peer: p, id: m.id, body: m.body, held: p.received(m)}
	defer func() {
		if err != nil && x.held != nil {
			p.server.budget.give(x.held)
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
		return fmt.Errorf("%w: the number of a request is taken", ErrMalformed)
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
	if p.leaving { // nobody waits for the answer
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

// handle answers a request, and then those that come while it is idle: the stack of a new goroutine
// would have to grow first.
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

// drop ends a request, and what it left open.
func (p *peer) drop(id uint64) {
	p.mu.Lock()
	if x := p.requests[id]; x != nil {
		x.dropped = true
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

// leave ends the connection for a server that closes.
func (p *peer) leave() {
	p.link.setTimeout(closingTimeout)
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.cancel(ErrMoved)
	p.endSequences(ErrMoved)
	p.handling.Wait()
	p.link.breaks(ErrMoved)
}

// end lets go of everything that the client has here.
func (p *peer) end() {
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.cancel(ErrDisconnected)
	p.cancelCommits(ErrDisconnected)
	p.endSequences(ErrDisconnected)
	p.handling.Wait()
	for _, h := range p.held {
		p.server.budget.give(h)
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
