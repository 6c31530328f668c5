package remote

import (
	"context"
	"errors"
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
