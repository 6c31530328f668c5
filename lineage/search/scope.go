package search

import (
	"database/sql"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// Query is a search query and its scope.
type Query struct {
	// Text is a query in the language of chat.Store.SearchMessages.
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

// finding is a search in progress.
type finding struct {
	Query
	store   *lineage.Store
	matcher *query.Matcher
	conn    *sql.Conn

	found map[address]*candidate
	order []address // the matches
}

// address identifies a message, document, asset or summary in the index.
type address struct {
	run, seq int64
	head     int
}

// candidate is an address with words of the query.
type candidate struct {
	role, words int64
	texts       []int64
	places      []leafAt
}

type leafAt struct{ leaf, at int32 }

// scoped reports whether the search is restricted to a part of the store.
func (f *finding) scoped() bool { return !f.Thread.IsZero() || f.User != "" || f.Among != nil }

// inScope is the condition of the scope for threads h. ?1 is a thread, ?2 a user.
func (f *finding) inScope() string {
	of := []string{`TRUE`}
	if !f.Thread.IsZero() {
		of = append(of, `h.id = ?1`)
	}
	if f.User != "" {
		of = append(of, `h.user = ?2`)
	}
	if f.Among != nil {
		of = append(of, `h.id IN temp.among`)
	}
	return strings.Join(of, ` AND `)
}

// visible returns the join and the condition that restrict usages u to the scope, and the arguments of
// the condition.
func (f *finding) visible() (scope, roles string, args []any) {
	scope = `CROSS JOIN runs s ON s.number = u.run AND u.seq <= s.reached`
	if f.scoped() {
		scope = `CROSS JOIN temp.scope s ON s.run = u.run AND u.seq <= s.upto`
	}
	if len(f.Roles) > 0 {
		roles = ` AND u.role IN (SELECT number FROM roles WHERE kind = ? AND name IN (?` + strings.Repeat(", ?", len(f.Roles)-1) + `))`
		args = append(args, int(structure.MessageUsage))
		for _, r := range f.Roles {
			args = append(args, r)
		}
	} else if f.steps {
		roles, args = ` AND u.role NOT IN (SELECT number FROM roles WHERE kind = ?)`, []any{int(summary)}
	}
	return scope, roles, args
}
