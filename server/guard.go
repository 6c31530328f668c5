package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/server/access"
)

type connKey struct{}

// withConn records which connections came through the socket.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c.LocalAddr().Network() == "unix")
}

// fromSocket reports whether a request came through the socket, whose listener has checked the user.
func fromSocket(r *http.Request) bool {
	ok, _ := r.Context().Value(connKey{}).(bool)
	return ok
}

// guarded refuses requests that a page of another origin may have caused. The host must be one of ours, so that a
// foreign name that resolves to this address is refused. The origin must be ours too, if a browser states it.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromSocket(r) {
			next.ServeHTTP(w, r)
			return
		}
		if !s.ourHost(r) {
			s.refuse(w, r, http.StatusMisdirectedRequest, "another host", "the request names a host that this server is not")
			return
		}
		origin := r.Header.Get("Origin")
		trusted := slices.Contains(s.o.Origins, origin)
		// Browsers hide the origin of a form if the page has no referrer, but they still tell that it is the same.
		// Documents without an origin, such as files and sandboxed frames, always count as another site.
		hidden := origin == "null" && r.Header.Get("Sec-Fetch-Site") == "same-origin"
		if origin != "" && !hidden && !trusted && !s.ourOrigin(r, origin) {
			s.refuse(w, r, http.StatusForbidden, "another origin", "pages of this origin may not call the server")
			return
		}
		if err := s.protected.Check(r); err != nil {
			s.refuse(w, r, http.StatusForbidden, "another origin", "only the page itself may ask for this")
			return
		}
		if trusted {
			h := w.Header()
			h.Add("Vary", "Origin")
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Cross-Origin-Resource-Policy", "cross-origin")
			h.Set("Access-Control-Expose-Headers", "ETag, Idempotency-Replayed, Lineage-Tip")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID, Range")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// ourHost reports whether the host of a request is one of this server: the address that the connection was made to,
// which no name server can change, or a name of ours.
func (s *Server) ourHost(r *http.Request) bool {
	host, port := r.Host, "80"
	if r.TLS != nil {
		port = "443"
	}
	if h, p, err := net.SplitHostPort(r.Host); err == nil {
		host, port = h, p
	}
	if port != s.port {
		return false
	}
	if slices.ContainsFunc(s.names, func(name string) bool { return strings.EqualFold(name, host) }) {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && ip.Unmap() == at.AddrPort().Addr().Unmap().WithZone("")
}

// ourOrigin reports whether an origin is that of the server, under the host name of the request.
func (s *Server) ourOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return err == nil && u.Scheme == scheme && strings.EqualFold(u.Host, r.Host)
}

var (
	errNobody = errors.New("no credentials")
	errForged = errors.New("not asked for by the page")
)

// caller authenticates a request.
func (s *Server) caller(r *http.Request) (*caller, error) {
	if fromSocket(r) {
		return &caller{name: "socket", writes: true, valid: always}, nil
	}
	now := s.o.now()
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		scheme, secret, _ := strings.Cut(authorization, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nil, errNobody
		}
		t, err := s.o.Access.Check(strings.TrimSpace(secret), now)
		if err != nil {
			return nil, err
		}
		return &caller{name: "token " + t.ID, writes: t.Writes, scope: t.Scope, valid: func(now time.Time) bool {
			_, err := s.o.Access.Check(strings.TrimSpace(secret), now)
			return err == nil
		}}, nil
	}
	cookie, err := r.Cookie(s.cookieName())
	if err != nil || !s.sessions.valid(cookie.Value, now) {
		return nil, errNobody
	}
	// Cookies ignore ports, so the page that causes the request may be from another server on this machine.
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "same-origin":
	case site == "none" && safe(r.Method):
	default:
		return nil, errForged
	}
	return &caller{name: "page", page: true, writes: true, valid: func(now time.Time) bool { return s.sessions.valid(cookie.Value, now) }}, nil
}

func always(time.Time) bool { return true }

func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// allowed wraps a handler so that only permitted callers reach it.
func (s *Server) allowed(who who, next http.Handler) http.Handler {
	if who == anyone {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := s.caller(r)
		switch {
		case errors.Is(err, errForged):
			s.refuse(w, r, http.StatusForbidden, "another site", "only the page itself may ask for this")
			return
		case errors.Is(err, errNobody), errors.Is(err, access.ErrRefused):
			s.unknown(w, r)
			return
		case err != nil:
			s.fail(w, r, err)
			return
		}
		requestOf(r).caller = c
		if why := s.denies(who, c); why != "" {
			s.refuse(w, r, http.StatusForbidden, "not allowed", why)
			return
		}
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), c.access())))
	})
}

// denies returns the reason why a caller may not call a route, empty if it may.
func (s *Server) denies(who who, c *caller) string {
	whole := c.scope.All()
	switch {
	case who == ourselves && c.name != "socket":
		return "this is for processes of the user of the server, on its socket"
	case who == visitor && !c.page:
		return "this is for the page"
	case (who == allReaders || who == changer) && !whole:
		return "the token is for a part of the store"
	case (who == changer || who == writers) && s.o.ReadOnly:
		return "the server is read-only"
	case (who == changer || who == writers) && !c.writes:
		return "the token is read-only"
	}
	return ""
}

// unknown answers a request without valid credentials. A person who opens a page is told how to get in.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	if len(s.o.Routes) > 0 && safe(r.Method) && strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.metrics.refused("no credentials")
		s.sendLogin(w, http.StatusUnauthorized)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="lineage"`)
	s.refuse(w, r, http.StatusUnauthorized, "no credentials", "a valid token or a session of the page is needed")
}
