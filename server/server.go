package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/server/attachment"
)

// Server is a listening server.
type Server struct {
	o    Options
	http *http.Server
	// base is the parent of the contexts of all requests. It ends when the server has closed.
	base context.Context
	end  context.CancelFunc

	tcp    net.Listener
	port   string
	names  []string // of hosts, in addition to the addresses of the machine
	found  *discovery
	served sync.WaitGroup
	failed chan error

	sessions  browserSessions
	limits    gates
	metrics   metrics
	images    *attachment.Sender
	protected *http.CrossOriginProtection
	used      atomic.Int64 // when the last request ended, in Unix nanoseconds
	closing   sync.Once
	closed    error
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.tcp.Addr() }

// URL returns the address of the page and the API, without a trailing slash.
func (s *Server) URL() string {
	scheme, host := "http", s.sessions.host
	if s.o.TLS != nil {
		scheme = "https"
	}
	switch at, _, _ := net.SplitHostPort(s.tcp.Addr().String()); {
	case s.o.TLS != nil && len(certificateNames(s.o.TLS)) > 0:
		host = certificateNames(s.o.TLS)[0]
	case !loopback(at):
		host = at
		if ip := net.ParseIP(at); ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
	}
	return scheme + "://" + net.JoinHostPort(host, s.port)
}

// Link returns a link that opens the page in a browser. It works once, within a minute.
func (s *Server) Link() string { return s.URL() + "/login#" + s.sessions.code(s.o.now()) }

// Used returns the time when the last request ended, or now if one is in progress.
func (s *Server) Used() time.Time {
	if s.limits.busy() {
		return s.o.now()
	}
	return time.Unix(0, s.used.Load())
}

// Failed returns a channel that gets the error of a server that stopped by itself.
func (s *Server) Failed() <-chan error { return s.failed }
