package server

import (
	"context"
	"io"
	"net/http"
	"time"
)

// limited limits the resources of requests: their number, the size and time of their bodies, and the time in which
// the caller must read the answer.
func (s *Server) limited(next http.Handler) http.Handler {
	g := &s.limits
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := requestOf(r)
		g.working.Add(1)
		defer g.working.Done()
		defer func() { s.used.Store(s.o.now().UnixNano()) }()
		defer request.free()
		if !request.count() {
			s.tooMany(w, r)
			return
		}
		now := time.Now()
		request.extend(now)
		if r.Body != nil && r.Body != http.NoBody {
			// The standard library removes this limit at the end of the body.
			_ = request.conn.SetReadDeadline(now.Add(g.limits.Body)) // every connection of a server has them
			request.body = r.Body
			r.Body = http.MaxBytesReader(w, r.Body, g.limits.BodySize)
		}
		next.ServeHTTP(w, r)
	})
}

// sized allows larger bodies for a route. The time for them grows with their size.
func (s *Server) sized(size int64, next http.Handler) http.Handler {
	if size <= s.o.Limits.BodySize {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if request := requestOf(r); request.body != nil {
			body := &steady{ReadCloser: request.body, c: request.conn, began: time.Now(), least: s.o.Limits.Body}
			r.Body = http.MaxBytesReader(w, body, size)
		}
		next.ServeHTTP(w, r)
	})
}

// slowest is the minimum rate of a large body, in bytes per second.
const slowest = 64 << 10

// steady is a body whose time limit grows with the bytes that have arrived.
type steady struct {
	io.ReadCloser
	c     *http.ResponseController
	began time.Time
	least time.Duration
	bytes int64
	more  int64 // seconds beyond least that the limit has now
}

// Read implements io.Reader.
func (b *steady) Read(p []byte) (int, error) {
	if more := b.bytes / slowest; more > b.more {
		b.more = more
		_ = b.c.SetReadDeadline(b.began.Add(b.least + time.Duration(more)*time.Second)) // every connection has them
	}
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	return n, err
}

// streaming turns the requests of a route into streams, which end when the server closes.
func (s *Server) streaming(long bool, next http.Handler) http.Handler {
	if !long {
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

// stream turns a request into a stream of events, which no longer counts as a request. The context ends when the
// server closes.
func (s *Server) stream(r *http.Request) (ctx context.Context, end func(), ok bool) {
	g := &s.limits
	if g.streams.Add(1) > int64(g.limits.Streams) {
		g.streams.Add(-1)
		return nil, nil, false
	}
	requestOf(r).free()
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(g.stop, cancel)
	return ctx, func() {
		stop()
		cancel()
		g.streams.Add(-1)
	}, true
}
