package api

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/access"
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

// SearchQuery describes a search.
type SearchQuery struct {
	Text  string
	Roles []string
	// Thread, when not zero, is the thread to search. Among, when not nil, selects the threads to search. Threads
	// that Scope does not allow are not named in the answer.
	Thread lineage.ThreadID
	Among  iter.Seq2[*lineage.ListedThread, error]
	Scope  access.Scope
	Limit  int
	// Behind is called if the search does not see the last commits yet, with their number.
	Behind func(commits uint64)
}

// UsageQuery describes a usage report. Empty and zero fields do not restrict it.
type UsageQuery struct {
	By              []string
	Since, Until    time.Time
	Zone            *time.Location
	Thread          lineage.ThreadID
	Agent, Model    string
	Users, Projects []string
}

// ImportQuery is an archive to import.
type ImportQuery struct {
	Archive              io.Reader
	Format, User, Prefix string
}

// ResumeQuery describes a session to create for an agent.
type ResumeQuery struct {
	At         lineage.SpanRef
	Thread     lineage.ThreadID
	Agent, Dir string
	DryRun     bool
}
