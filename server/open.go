package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/server/attachment"
)

// Open starts a server. If the address cannot be used, it returns an error at once. The caller must close the server
// before the store.
func Open(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, failed: make(chan error, 2), images: attachment.NewSender(), protected: http.NewCrossOriginProtection()}
	for _, origin := range o.Origins {
		if err := s.protected.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("origin: %w", err)
		}
	}
	host, err := o.Access.Host(ctx)
	if err != nil {
		return nil, err
	}
	s.names = append(certificateNames(o.TLS), "localhost", host)
	s.sessions.host = host
	s.limits.set(o.Limits)
	s.used.Store(o.now().UnixNano())
	s.base, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: o.Limits.Header,
		IdleTimeout:       o.Limits.Idle,
		MaxHeaderBytes:    headerSize,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ConnContext:       withConn,
	}
	listeners, err := s.listen(ctx)
	if err != nil {
		s.end()
		return nil, err
	}
	for _, l := range listeners {
		s.served.Go(func() {
			if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.failed <- err
			}
		})
	}
	return s, nil
}

// listen opens the address of the server and, if other programs are to find it, announces it.
func (s *Server) listen(ctx context.Context) (listeners []net.Listener, err error) {
	o := &s.o
	if s.tcp, err = listen(ctx, o.Listen); err != nil {
		return nil, err
	}
	_, s.port, _ = net.SplitHostPort(s.tcp.Addr().String()) // of a listener, it can be split
	listeners = []net.Listener{s.limits.listener(s.tcp)}
	if o.TLS != nil {
		listeners[0] = tls.NewListener(listeners[0], withProtocols(o.TLS))
	}
	if o.Runtime == "" {
		return listeners, nil
	}
	found := Found{PID: os.Getpid(), Store: o.Name, URL: s.URL(), ReadOnly: o.ReadOnly, Started: o.now().UTC()}
	if s.found, err = publish(o.Runtime, o.Store.ID(), found); err != nil {
		return nil, errors.Join(err, s.tcp.Close())
	}
	if s.found.socket != nil {
		listeners = append(listeners, s.limits.listener(s.found.socket))
	}
	return listeners, nil
}

// listen listens on an address. If it is empty, it listens near the default address.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var l net.ListenConfig
	if address != "" {
		return l.Listen(ctx, "tcp", address)
	}
	host, first, _ := net.SplitHostPort(DefaultListen) // a constant
	port, _ := strconv.Atoi(first)
	for i := range Ports {
		if got, err := l.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port+i))); err == nil {
			return got, nil
		}
	}
	return l.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
}

// withProtocols returns a configuration with which a listener also speaks HTTP/2.
func withProtocols(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"h2", "http/1.1"}
	return c
}

// Close stops the server. Streams of events end at once. Other requests have until the context ends, at most two
// seconds.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if s.found != nil {
			s.closed = s.found.remove()
		}
		s.limits.close()
		err := s.http.Shutdown(ctx)
		s.end() // tells remaining requests to end
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			err = s.http.Close()
		}
		s.closed = errors.Join(s.closed, err)
		s.served.Wait()
		s.limits.wait()
	})
	return s.closed
}
