package server

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// gates count connections, requests and streams, and refuse those beyond the limits.
type gates struct {
	limits      Limits
	connections chan struct{}
	requests    atomic.Int64
	streams     atomic.Int64
	working     sync.WaitGroup

	stop    context.Context // cancelled when streams must end
	endThem context.CancelFunc
}

func (g *gates) set(l Limits) {
	g.limits = l
	g.connections = make(chan struct{}, l.Connections)
	g.stop, g.endThem = context.WithCancel(context.Background())
}

// close ends streams.
func (g *gates) close() { g.endThem() }

// wait waits for handlers that are still running after their connections were closed.
func (g *gates) wait() { g.working.Wait() }

// busy reports whether a request is in progress.
func (g *gates) busy() bool { return g.requests.Load() > 0 || g.streams.Load() > 0 }

// listener returns a listener that closes connections beyond the limit.
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
