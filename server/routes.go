package server

import "net/http"

// Route is a route of the page or the API. Its pattern is one of http.ServeMux, with a method.
type Route struct {
	Pattern string
	// Writes is set if the route changes the store.
	Writes bool
	// Scoped is set if the handler respects the scope of its caller (access.Of). Otherwise the route is only for
	// callers with access to the whole store.
	Scoped bool
	// Streams is set for an answer that does not end by itself. The context of the request ends when the server
	// closes.
	Streams bool
	// BodySize is the maximum size of the body in bytes, if it is more than that of Limits.
	BodySize int64
	Handler  http.Handler
}

// route is a route together with who may call it.
type route struct {
	pattern string
	who     who
	handler http.HandlerFunc
}

// who may call a route.
type who int

const (
	anyone     who = iota // without credentials
	ourselves             // processes of this user, on the socket
	readers               // callers that may read something; the handler must respect the scope of a token
	allReaders            // callers that may read the whole store
	visitor               // a session of the page
	changer               // callers that may change the whole store
	writers               // callers that may change something; the handler must respect the scope of a token
)

// who returns who may call the route.
func (r *Route) who() who {
	switch {
	case r.Scoped && r.Writes:
		return writers
	case r.Scoped:
		return readers
	case r.Writes:
		return changer
	}
	return allReaders
}

// routes returns all routes of the server except those of the page and the API.
func (s *Server) routes() []route {
	return []route{
		{"GET /healthz", anyone, s.healthz},
		{"GET /readyz", anyone, s.readyz},
		{"GET /metrics", allReaders, s.showMetrics},

		{"GET /login", anyone, s.loginPage},
		{"GET /login.js", anyone, s.loginScript},
		{"GET /login.css", anyone, s.loginStyle},
		{"GET /favicon.ico", anyone, s.noIcon},
		{"POST /login", anyone, s.login},
		{"POST /logout", visitor, s.logout},
		{"POST /links", ourselves, s.newLink},

		{"GET /v1/events", readers, s.events},
		{"GET /content/{id}", readers, s.content},
		{"GET /v1/content/{id}", readers, s.content},
	}
}

// handler returns the handler of all requests.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	add := func(pattern string, who who, h http.Handler) { mux.Handle(pattern, noted(pattern, s.allowed(who, h))) }
	for _, r := range s.routes() {
		add(r.pattern, r.who, r.handler)
	}
	for _, r := range s.o.Routes {
		add(r.Pattern, r.who(), s.sized(r.BodySize, s.streaming(r.Streams, r.Handler)))
	}
	return s.observed(s.limited(s.guarded(mux)))
}
