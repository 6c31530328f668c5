package remote

import (
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

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

// Open starts serving an engine.
func (s *Server) Open(e backend.Engine) {
	description := describe(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine, s.store = e, description
	s.change()
}

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
