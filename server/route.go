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
