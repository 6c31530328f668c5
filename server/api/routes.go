// Package api is the JSON API of the server. It offers over HTTP what the command line does with conversations.
//
// Every route is a row of one table (table.go), with the types of its input and answer. The OpenAPI document, the
// operations of a batch and the tests are derived from the table. A change is an operation: a route runs one
// operation, and a batch runs several in one commit. Threads, contexts and positions are looked up only in scope.go,
// which respects the scope of the caller.
package api

import (
	"log/slog"
	"sync"
	"time"

	"github.com/lineage-store/lineage/server"
)

// New returns an API.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.looked == 0 {
		o.looked = maxLooked
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	a := &API{o: o}
	a.routes = a.table()
	a.openAPI = sync.OnceValue(func() []byte { return document(a.routes) })
	return a
}

// Routes returns the routes of the API.
func (a *API) Routes() (all []server.Route) {
	for i := range a.routes {
		r := &a.routes[i]
		if r.serve == nil { // the server itself serves it
			continue
		}
		all = append(all, server.Route{Pattern: r.pattern, Writes: r.needs.writes, Scoped: !r.needs.whole, Streams: r.streams, BodySize: r.bodySize(), Handler: a.handler(r)})
	}
	return all
}
