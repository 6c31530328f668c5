// Package searched says what a search index has of a store, and what a search asks an index. There is an index in a
// file, in lineage/search, and one in the tables of a server, which an engine provides.
package searched

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Engine is implemented by engines that have an index for all processes.
type Engine interface{ SearchIndex() Index }

// Index is a search index that the processes of a store share.
type Index interface {
	// View returns a view for one search.
	View() View
	// Update brings the index up to date. It is ErrReadOnly if this process may not change it.
	Update(ctx context.Context, store *lineage.Store, u Updating) error
	// Mark returns the position of the index. It is ErrUnsettled if the index cannot be searched: there is none yet, or it
	// is being made again.
	Mark(ctx context.Context) (derived.Mark, error)
}

// Updating configures an update. Until and Progress are those of derived.Follower.
type Updating struct {
	Until    time.Time
	Progress func(done, total uint64)
}

// WindowLimit is the number of changed subjects and records at which a transaction of an update ends. 0 is the default of
// the follower. Tests make it smaller.
var WindowLimit = 0

// MostExpanded is the largest number of terms that the prefixes of a query stand for in a shared index. Tests make it smaller.
var MostExpanded = 20_000

// ErrReadOnly is returned when a process may read a shared index and not change it.
var ErrReadOnly = errors.New("the search index cannot be changed")

// ErrUnsettled is returned when an index is not in a state that can be searched, because another process is changing
// it. The search begins again.
var ErrUnsettled = errors.New("the search index is being updated")

// ErrTooBroad is returned for a query whose prefixes stand for more than MostExpanded terms.
var ErrTooBroad = errors.New("prefixes of too many words")

// ErrRebuilt is returned when an index was made again after a search began. The search begins again.
var ErrRebuilt = fmt.Errorf("it was made again: %w", ErrUnsettled)

// ErrDamaged is returned when the content of an index is impossible. The next update makes it again.
var ErrDamaged = errors.New("the search index is damaged")

// View answers a search.
type View interface {
	// Find collects the occurrences of leaves in a scope, and returns the number of steps in the scope. It may leave
	// out those of messages that do not fulfil the condition.
	Find(ctx context.Context, s *Scope, leaves []query.Leaf, condition query.Condition, into Collector) (steps int, err error)
	// Locations describes addresses that were found by this view.
	Locations(ctx context.Context, s *Scope, addresses []Address) ([]Location, error)
}

// Collector collects occurrences.
type Collector interface {
	// Reset forgets what was added. Find calls it when it begins, and again when it starts over.
	Reset()
	// Add adds an occurrence. Those of an address come one after another, in the order of run, step and head.
	Add(o Occurrence)
}

// Scope is the part of the store that is searched.
type Scope struct {
	// Thread, when not zero, is the only thread, and User, when not empty, the only user.
	Thread lineage.ThreadID
	User   string
	// Among has the only threads, if Listed is set.
	Among  []lineage.ThreadID
	Listed bool
	// Roles, when not empty, are the only roles of messages. NoSummaries leaves out summaries.
	Roles       []string
	NoSummaries bool
	// Unsettled also searches an index that is not up to date, or that another process is changing, as far as it is.
	Unsettled bool
}

// Restricted reports whether the scope is a part of the threads.
func (s *Scope) Restricted() bool { return !s.Thread.IsZero() || s.User != "" || s.Listed }

// Address identifies a message, document, asset or summary in an index.
type Address struct {
	Run, Seq int64
	Head     int
	// Role is a number of the index for its kind and role.
	Role int64
}

// Occurrence is a leaf at a word of a text.
type Occurrence struct {
	Address
	// Text identifies the text within its message, and Words is its number of words.
	Text, Words int64
	Leaf, At    int32
}

// Location is where an address is in the store.
type Location struct {
	// Run is the id of the run, or that of a summary. Kind is Summary for a summary, and Owner then its context.
	Run   structure.RunID
	Kind  structure.UsageKind
	Owner structure.ContextID
	// Threads are the threads in scope that see it, oldest first, and Contexts the contexts outside threads.
	Threads  []lineage.ThreadID
	Contexts []lineage.ContextID
}
