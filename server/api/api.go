// Package api is the JSON API of the server: what the command line does to conversations, over HTTP.
//
// Every route is a row of one table (table.go) with the types of its input and answer. The OpenAPI document, the operations
// of a batch and the tests follow from the table. A change is an operation: its route makes one of it, and a batch several in
// one commit. Threads, contexts and positions are found in scope.go alone, which keeps to the scope of the caller.
package api

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server"
)

// Options are the options of the API. Store is required.
type Options struct {
	Store *lineage.Store
	// Search searches the store; nil where it cannot be searched.
	Search func(ctx context.Context, q SearchQuery) ([]*records.Hit, error)
	// SearchChat searches a chat as chat.Store does; nil where chats cannot be searched.
	SearchChat func(ctx context.Context, chatID, query string, o chat.SearchOptions) ([]chat.SearchResult, error)
	// Usage reports usage; nil where there is none.
	Usage func(ctx context.Context, q UsageQuery) ([]*records.Usage, error)
	// Import adds an archive to the store; nil where nothing can be imported.
	Import func(ctx context.Context, q ImportQuery) (*records.Imported, error)
	// Resume makes a session of an agent; nil where there is none.
	Resume func(ctx context.Context, q ResumeQuery) (*records.Resumed, error)
	// Heartbeat is the pause after which a stream shows that it lives. Default 15 s.
	Heartbeat time.Duration
	// Logger gets what went wrong inside. Default none.
	Logger *slog.Logger
	// now is the clock; for tests.
	now func() time.Time
}

// API answers requests.
type API struct {
	o       Options
	routes  []route
	openAPI func() []byte // the document
	// bodies is how many bytes of bodies are in memory.
	bodies atomic.Int64
	keys   keeper
}

// New returns an API.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
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
		if r.serve == nil { // the server has it
			continue
		}
		all = append(all, server.Route{Pattern: r.pattern, Writes: r.needs.writes, Scoped: !r.needs.whole, Streams: r.streams, BodySize: r.bodySize(), Handler: a.handler(r)})
	}
	return all
}
