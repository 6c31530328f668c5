package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

// Options configure a service. Store is required.
type Options struct {
	Store *lineage.Store
	// Search finds messages. Usage reports what answers cost. If one is nil, its tool does not exist.
	Search func(context.Context, SearchQuery) ([]Hit, error)
	Usage  func(context.Context, UsageQuery) (rows []*records.Usage, total *records.Usage, err error)
	// Version is the version of the program.
	Version string
	// Logger gets internal errors. Default none.
	Logger *slog.Logger

	// More, when not nil, registers further tools, resources and prompts with each server.
	More func(*mcp.Server)
}

// SearchQuery describes a search. Thread, when not zero, and Among, when not nil, restrict it.
type SearchQuery struct {
	Text   string
	Thread lineage.ThreadID
	Among  iter.Seq2[*lineage.ListedThread, error]
	Roles  []string
	Limit  int
	// Behind is called if the search does not see the last commits yet, with their number.
	Behind func(commits uint64)
}

// Hit is a message or summary that was found, with the threads in scope that contain it.
type Hit struct {
	// Entry is nil for a summary, which has an id, a time and a text.
	Entry        *lineage.Entry
	Role         string // by which a message is found
	Summary      structure.SummaryID
	SummarizedAt time.Time
	Text         string
	Threads      []lineage.ThreadID
	Rank         float64
	Snippet      string
}

// UsageQuery describes a usage report. Empty and zero fields do not restrict it.
type UsageQuery struct {
	By              []string
	Since, Until    time.Time
	Thread          lineage.ThreadID
	Users, Projects []string
}

// Service answers clients. It is safe for concurrent use.
type Service struct {
	o       Options
	schemas *mcp.SchemaCache
}

// New returns a service.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{o: o, schemas: mcp.NewSchemaCache()}
}

// Client describes a client.
type Client struct {
	// Scope returns what the client may read. The zero scope is the whole store.
	Scope func(context.Context, *mcp.ServerSession) (access.Scope, error)
	// Writes are the names of the tools from WriteTools that the client may call.
	Writes []string
}

// WriteTools are the names of the tools that change the store.
func WriteTools() []string { return []string{"fork", "append", "checkpoint", "return"} }

// CheckWrites returns an error unless all names are in WriteTools.
func CheckWrites(names []string) error {
	for _, name := range names {
		if !slices.Contains(WriteTools(), name) {
			return fmt.Errorf("tool %.40q: %w: the tools that change the store are %v", name, lineage.ErrInvalid, WriteTools())
		}
	}
	return nil
}

// registry registers what a server offers to a client.
type registry struct {
	*Service
	client *Client
	server *mcp.Server
	// checks are the checks of arguments, by the names of tools.
	checks map[string]func(json.RawMessage) error
}
