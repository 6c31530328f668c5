package server

import (
	"fmt"
	"net/http"
	"net/url"
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
	return s.observed(s.limited(s.guarded(s.exact(mux))))
}

// exact refuses requests that would be read as others. The mux redirects a path with the part . or .. to another path with
// the same method, so the deletion of a branch named .. would delete its thread. Malformed parameters of a query would be
// left out, and conditions with them.
func (s *Server) exact(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClean(r.URL.EscapedPath()) {
			s.refuse(w, r, http.StatusNotFound, "not found", "no route has this path: a part of it is empty, or . or .., which have to be encoded as %2E and %2E%2E")
			return
		}
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
			s.refuse(w, r, http.StatusBadRequest, "invalid", fmt.Sprintf("query: %.100s", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isClean reports whether no part of a path is empty, except the last, or leads elsewhere.
func isClean(path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if part == "." || part == ".." || part == "" && i < len(parts)-1 {
			return false
		}
	}
	return true
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
