package search

import (
	"iter"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
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

	// steps returns one hit per step, and no summaries.
	steps bool
}

// scope returns the scope of the query. The threads of Among are added by the caller.
func (q *Query) scope() searched.Scope {
	return searched.Scope{Thread: q.Thread, User: q.User, Listed: q.Among != nil, Roles: q.Roles, NoSummaries: q.steps && len(q.Roles) == 0}
}

// activeSearch is a search in progress.
type activeSearch struct {
	Query
	store   *lineage.Store
	scope   searched.Scope
	matcher *query.Matcher
	view    searched.View
	present *present // set if the index is behind the store

	current candidate // of which occurrences are added
	matches query.Matches
	id      []byte // memory for the id of a match
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
