package lineage

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type (
	// ThreadQuery selects threads. The zero value selects all, last updated first.
	//
	//	User         *string           // if not nil, their user
	//	SourcePrefix string            // a prefix of their source id
	//	TitlePrefix  string            // a prefix of their title, ignoring case
	//	Metadata     []MetadataIs      // values that their metadata must all have
	//	From, To     time.Time         // not updated before From, and updated before To; zero times are no limits
	//	Oldest       bool              // reverses the order
	//	After        backend.PageToken // continues after a listed thread: ListedThread.Page
	ThreadQuery = backend.ThreadQuery
	// MetadataIs is a value that the metadata must have, at a key or in the array at that key.
	//
	//	Key   string          // a member of the metadata
	//	Value json.RawMessage // a string, number or bool
	MetadataIs = backend.MetadataIs
)

// ListedThread is a thread of a listing. Was is its state at the time of listing.
type ListedThread struct {
	*Thread
	Was ThreadInfo
	// Page continues the listing after this thread: see ThreadQuery.After. backend.ParsePageToken
	// reads its text.
	Page backend.PageToken
}

// Threads yields the threads that match a query, ordered by last update. See ThreadQuery for its
// cost. A thread that is updated meanwhile may be missing on later pages or appear twice.
func (s *Store) Threads(ctx context.Context, q ThreadQuery) iter.Seq2[*ListedThread, error] {
	return func(yield func(*ListedThread, error) bool) {
		for l, err := range s.engine.ListThreads(ctx, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&ListedThread{Thread: &Thread{store: s, id: l.ID}, Was: ThreadInfoOf(l), Page: l.Token()}, nil) {
				return
			}
		}
	}
}

// Contexts yields the contexts outside of threads, oldest first. Thread.Contexts yields those of a
// thread.
func (s *Store) Contexts(ctx context.Context) iter.Seq2[*Context, error] {
	return s.handles(s.engine.ContextsAlone(ctx, structure.ContextID{}))
}
