package server

import (
	"net/http"
	"strings"
)

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
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.unrouted(mux, w, r) })
	return s.observed(s.limited(s.guarded(mux)))
}

// unrouted answers a request that no route is for.
func (s *Server) unrouted(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		s.refuse(w, r, http.StatusNotFound, "not found", "no route has this path")
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.refuse(w, r, http.StatusMethodNotAllowed, "method not allowed", "the path has other methods: "+strings.Join(allowed, ", "))
}
