// Package api is the JSON API of the server. It offers over HTTP what the command line does with conversations.
//
// Every route is a row of one table (table.go), with the types of its input and answer. The OpenAPI document, the
// operations of a batch and the tests are derived from the table. A change is an operation: a route runs one
// operation, and a batch runs several in one commit. Threads, contexts and positions are looked up only in scope.go,
// which respects the scope of the caller.
package api

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server"
)

// Options configure the API. Store is required.
type Options struct {
	Store *lineage.Store
	// Search searches the store. It is nil if the store cannot be searched.
	Search func(ctx context.Context, q SearchQuery) ([]*records.Hit, error)
	// SearchChat searches a chat as chat.Store does, and yields the results. It is nil if chats cannot be searched.
	SearchChat func(ctx context.Context, chatID, query string, o chat.SearchOptions) iter.Seq2[chat.SearchResult, error]
	// Usage reports usage. It is nil if there are no reports.
	Usage func(ctx context.Context, q UsageQuery) ([]*records.Usage, error)
	// Import adds an archive to the store. It is nil if imports are not possible.
	Import func(ctx context.Context, q ImportQuery) (*records.Imported, error)
	// Resume creates a session of an agent. It is nil if that is not possible.
	Resume func(ctx context.Context, q ResumeQuery) (*records.Resumed, error)
	// Heartbeat is the interval of heartbeats on a stream. Default 15 s.
	Heartbeat time.Duration
	// Logger gets internal errors. Default none.
	Logger *slog.Logger
	// looked is used instead of maxLooked; for tests.
	looked int
	// now is the clock; for tests.
	now func() time.Time
}

// API answers requests.
type API struct {
	o       Options
	routes  []route
	openAPI func() []byte // returns the document
	// bodies is the number of bytes of bodies in memory.
	bodies  atomic.Int64
	keys    keeper
	handles handles
}

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
