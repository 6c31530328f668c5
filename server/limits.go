package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// gates count connections, requests and streams, and refuse what is too many.
type gates struct {
	limits      Limits
	connections chan struct{}
	requests    atomic.Int64
	streams     atomic.Int64
	working     sync.WaitGroup

	stop    context.Context // ends when streams are to end
	endThem context.CancelFunc
}

func (g *gates) set(l Limits) {
	g.limits = l
	g.connections = make(chan struct{}, l.Connections)
	g.stop, g.endThem = context.WithCancel(context.Background())
}

// close ends streams.
func (g *gates) close() { g.endThem() }

// wait waits for handlers that are still at work after their connections were closed.
func (g *gates) wait() { g.working.Wait() }

// busy reports whether a request is at work.
func (g *gates) busy() bool { return g.requests.Load() > 0 || g.streams.Load() > 0 }

// listener returns a listener that closes connections that are too many.
func (g *gates) listener(l net.Listener) net.Listener { return &limitListener{l, g.connections} }

type limitListener struct {
	net.Listener
	free chan struct{}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &limitConn{Conn: c, free: l.free}, nil
		default:
			_ = c.Close() // it is refused
		}
	}
}

type limitConn struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *limitConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

type slotKey struct{}

// slot is the place of a request among those at work.
type slot struct {
	g    *gates
	once sync.Once
	// body is the body without the usual limit of its size.
	body io.ReadCloser
}

func (s *slot) free() { s.once.Do(func() { s.g.requests.Add(-1) }) }

// limited bounds what a request may take: how many there are, the size and time of its body, and the time in which the
// caller must read the answer.
func (s *Server) limited(next http.Handler) http.Handler {
	g := &s.limits
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := &slot{g: g}
		g.working.Add(1)
		defer g.working.Done()
		defer func() { s.used.Store(s.o.now().UnixNano()) }()
		defer own.free()
		if g.requests.Add(1) > int64(g.limits.Requests) {
			s.tooMany(w, r)
			return
		}
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Now().Add(g.limits.Write)) // every connection of a server has them
		if r.Body != nil && r.Body != http.NoBody {
			// The standard library takes the limit back at the end of the body.
			_ = c.SetReadDeadline(time.Now().Add(g.limits.Body))
			own.body = r.Body
			r.Body = http.MaxBytesReader(w, r.Body, g.limits.BodySize)
		}
		next.ServeHTTP(&patient{w, c, g.limits.Write}, r.WithContext(context.WithValue(r.Context(), slotKey{}, own)))
	})
}

// sized lets a route have larger bodies. They may take longer in proportion.
func (s *Server) sized(size int64, next http.Handler) http.Handler {
	if size <= s.o.Limits.BodySize {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, is := r.Context().Value(slotKey{}).(*slot); is && own.body != nil {
			body := &steady{ReadCloser: own.body, c: http.NewResponseController(w), began: time.Now(), least: s.o.Limits.Body}
			r.Body = http.MaxBytesReader(w, body, size)
		}
		next.ServeHTTP(w, r)
	})
}

// slowest is the least rate of a large body, in bytes a second.
const slowest = 64 << 10

// steady is a body that has time in proportion to what has arrived.
type steady struct {
	io.ReadCloser
	c     *http.ResponseController
	began time.Time
	least time.Duration
	bytes int64
}

// Read implements io.Reader.
func (b *steady) Read(p []byte) (int, error) {
	_ = b.c.SetReadDeadline(b.began.Add(b.least + time.Duration(b.bytes/slowest)*time.Second)) // every connection has them
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	return n, err
}

// streaming makes the requests of a route streams, which end when the server closes.
func (s *Server) streaming(is bool, next http.Handler) http.Handler {
	if !is {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end, ok := s.stream(r)
		if !ok {
			s.tooMany(w, r)
			return
		}
		defer end()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (s *Server) tooMany(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	s.refuse(w, r, http.StatusServiceUnavailable, "too many requests", "try again in a moment")
}

// stream makes a request a stream of events, which does not count as a request any more. The context ends when the server
// closes.
func (s *Server) stream(r *http.Request) (ctx context.Context, end func(), ok bool) {
	g := &s.limits
	if g.streams.Add(1) > int64(g.limits.Streams) {
		g.streams.Add(-1)
		return nil, nil, false
	}
	if own, is := r.Context().Value(slotKey{}).(*slot); is {
		own.free()
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(g.stop, cancel)
	return ctx, func() {
		stop()
		cancel()
		g.streams.Add(-1)
	}, true
}

// patient is an answer of which each part has some time to leave.
type patient struct {
	http.ResponseWriter
	c       *http.ResponseController
	atLeast time.Duration
}

// Write implements io.Writer.
func (p *patient) Write(b []byte) (int, error) {
	_ = p.c.SetWriteDeadline(time.Now().Add(p.atLeast)) // the write fails, if this did
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
