package search

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Query is a search query and its scope.
type Query struct {
	// Text is a query in the language of chat.Store.SearchMessages. It has no filters such as agent:codex: Among is for them.
	Text string
	// Vector is used instead of Text. It searches for the texts whose embeddings are nearest to it, by cosine
	// similarity. The index needs an Embedder. The search is exact: it compares the vectors of all texts in scope
	// that have the same length. Names are not searched.
	Vector []float32
	// Thread, when not zero, restricts the search to a thread. User, when not empty, restricts it to the threads of a
	// user. Among, when not nil, restricts it to the threads that it yields, such as those of Store.Threads. Without
	// any of them, the whole store is searched, including contexts outside threads.
	Thread lineage.ThreadID
	User   string
	Among  iter.Seq2[*lineage.ListedThread, error]
	// Roles, when not empty, restricts the search to messages with these roles.
	Roles []string
	// Limit is the maximum number of hits. Default chat.DefaultSearchLimit.
	Limit int
	// UpdateFor, when not zero, limits the time in which a search for text brings the index up to date: it ends with the
	// transaction in which that time is over. The hits are then those of the commits that the index has: none while an index
	// on a server is cleared.
	UpdateFor time.Duration
	// Behind, when not nil, is called if the index is not up to date, with the number of commits that it does not have.
	// why is derived.ErrUnfinished if the time was not enough; else the index is on a server, and this process may not
	// change it.
	Behind func(commits uint64, why error)

	// steps returns one hit per step, and no summaries.
	steps bool
}

// scope returns the scope of the query. The threads of Among are added by the caller.
func (q *Query) scope() searched.Scope {
	return searched.Scope{Thread: q.Thread, User: q.User, Listed: q.Among != nil, Roles: q.Roles, NoSummaries: q.steps && len(q.Roles) == 0}
}

// until returns when an update ends, zero if it ends when the index is up to date.
func (q *Query) until() time.Time {
	if q.UpdateFor == 0 || q.Vector != nil {
		return time.Time{}
	}
	return time.Now().Add(q.UpdateFor)
}

// activeSearch is a search in progress.
type activeSearch struct {
	Query
	store   *lineage.Store
	scope   searched.Scope
	matcher *query.Matcher
	view    searched.View
	present *present // set if the index may be behind the store
	// outdated says why the index is behind the store, and behind by how many commits. It is nil if the index is not.
	outdated error
	behind   uint64

	ahead map[structure.SpanRef]spanAhead // of the hits that are shown next

	current candidate // of which occurrences are added
	matches query.Matches
	id      []byte // memory for the id of a match
}

// setOutdated sets the outcome of an update. It reports whether the index can be searched as it is.
func (f *activeSearch) setOutdated(err error) bool {
	f.outdated, f.behind, f.scope.Unsettled = err, 0, err != nil
	return err == nil || errors.Is(err, searched.ErrReadOnly) || errors.Is(err, derived.ErrUnfinished)
}

// setBehind sets how far an index at a commit is behind the store.
func (f *activeSearch) setBehind(ctx context.Context, at uint64) error {
	head, err := f.store.View().Head(ctx)
	f.behind = head.Number - min(at, head.Number)
	return err
}

// spanAhead is a span that was read before its hit is shown.
type spanAhead struct {
	entries []*lineage.Entry
	step    *backend.Step
}

// address identifies a message, document, asset or summary in the index.
type address struct {
	run, seq int64
	head     int
}

// candidate is an address with words of the query.
type candidate struct {
	address
	role, words int64
	texts       []int64
	places      []leafAt
}

type leafAt struct{ leaf, at int32 }
