package remote

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
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
	waits     int // requests of codeWait that the client has not cancelled
	dropped   int // requests that the client has cancelled
	sequences map[uint64]*stream
	snapshots map[uint64]backend.Snapshot
}

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

// exchange is a request that a server is working on.
type exchange struct {
	peer      *peer
	id        uint64
	code      uint8
	body      []byte
	ctx       context.Context
	cancel    context.CancelCauseFunc
	reserved  *reservation // bytes of the request; nil if it was refused
	refused   error        // why the method is not called
	counted   bool         // counted in peer.handling
	cancelled bool         // by the client; peer.mu guards it
	receiver  receiver
	reported  time.Duration // when progress was last reported
}

// stream is a sequence that a client is reading.
type stream struct {
	peer   *peer
	id     uint64 // number of the request that started it
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu       sync.Mutex // held while elements are read
	pull     func(out *wire) (bool, error)
	stop     func()
	ended    bool
	batch    int    // elements of the next answer
	request  uint64 // number of the request being answered
	reported time.Duration
	// stopIdle stops the timer that ends a stream that is not read.
	stopIdle func() bool
}

// reservation is the number of bytes of one message. budget.mu guards it and peer.bytes.
type reservation struct {
	peer  *peer
	bytes int
}

// receiver is what a method is called on: the current state of an engine, or a snapshot.
type receiver struct {
	backend.Reader
	engine  backend.Engine // nil for a snapshot
	peer    *peer
	request *exchange
	// progress reports progress to the client, at most a few times a second.
	progress func(done, total int64)
}

// space is a number of bytes shared by several users. Waiters are served in the order in which they came.
type space struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
}

// budget counts the bytes of requests that a server keeps.
type budget struct {
	mu    sync.Mutex
	used  int
	large *reservation // the message that may exceed the limits
}

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

type waiter struct {
	n     int
	taken chan struct{} // closed when the waiter has its bytes
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

// change wakes connections that wait for the engine. s.mu must be held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
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

// heard removes a peer from those that have not sent a greeting. s.mu must be held.
func (s *Server) heard(p *peer) {
	if i := slices.Index(s.silent, p); i >= 0 {
		s.silent = slices.Delete(s.silent, i, i+1)
	}
}

// errSilent ends a connection without a greeting.
var errSilent = errors.New("no greeting")

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
