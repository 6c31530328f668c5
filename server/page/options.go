package page

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// Options configure a page. Store is required.
type Options struct {
	Store *lineage.Store
	// Search finds messages, best first. If it is nil, texts cannot be searched. Package search provides one.
	Search func(ctx context.Context, q SearchQuery) ([]Hit, error)
	// Usage reports what answers cost: rows grouped as the query asks, and their sum. If it is nil, there is no usage
	// view. Package usage provides one.
	Usage func(ctx context.Context, q UsageQuery) (rows []*records.Usage, total *records.Usage, err error)
	// Cost returns the displayed cost of a conversation, or "" if it is unknown. It is called for each row of a list,
	// so it must be fast. If it is nil, lists have no costs.
	Cost func(id lineage.ThreadID) string
	// CostsPending reports whether Cost does not yet know of the last changes, and will soon. If it is nil, costs change
	// only with the store.
	CostsPending func(ctx context.Context) bool
	// Resume prepares a session of an agent from a history, without writing it: see ErrNoSession. Agents are the
	// agents to offer. If it is nil, the page shows only the command.
	Resume func(ctx context.Context, q ResumeQuery) (*Resumed, error)
	Agents []string
	// ReadOnly hides everything that changes the store.
	ReadOnly bool
	// Logger receives the details of errors, which are not sent to browsers. If it is nil, they are dropped.
	Logger *slog.Logger

	now func() time.Time
}

// SearchQuery describes a search. Among, when not nil, selects the threads to search.
type SearchQuery struct {
	Text  string
	Among *lineage.ThreadQuery
	Limit int
	// Behind is called if the search does not see the last commits yet, with their number.
	Behind func(commits uint64)
}

// Hit is a found message: the role by which it is found, the threads that have it, and an excerpt with the found words between
// <mark> and </mark>.
type Hit struct {
	Entry   *lineage.Entry
	Role    string
	Threads []lineage.ThreadID
	Snippet string
}

// UsageQuery selects the usage to report.
type UsageQuery struct {
	// By is day, model, agent or project.
	By string
	// Since excludes earlier answers, unless it is zero.
	Since time.Time
}

// ErrNoSession is returned by Options.Resume if no session can be made from a history. The text of the error states
// the reason.
var ErrNoSession = errors.New("no session can be made")

// Resumed describes the session that would be made from a history.
type Resumed struct {
	*records.Resumed
	Losses []lineage.Loss
	// Note describes a choice that has to be made when the session is created, or is empty.
	Note string
}

// Size returns the size of the session's file, formatted.
func (r *Resumed) Size() string { return count(r.Lines, "line") + ", " + size(uint64(r.Bytes)) }

// ResumeQuery selects the history and the agent of a session.
type ResumeQuery struct {
	Thread lineage.ThreadID
	At     lineage.SpanRef
	// Agent is the agent, or empty for the one that the thread came from.
	Agent string
}
