package lineage

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

type (
	// ThreadQuery chooses threads. The zero value chooses all, the one updated last first.
	ThreadQuery = backend.ThreadQuery
	// MetadataIs is a value that metadata must have.
	MetadataIs = backend.MetadataIs
)

// ListedThread is a thread of a listing, as it was then.
type ListedThread struct {
	*Thread
	Was ThreadInfo
	// Page is where a listing continues behind the thread: see ThreadQuery.After. Its text is read by
	// backend.ParsePageToken.
	Page backend.PageToken
}

// Threads yields the threads that pass a query, in the order of their last updates. Its cost
// is that of what is read of it, see ThreadQuery. A thread that is updated meanwhile may be
// missing on later pages, or be there twice.
func (s *Store) Threads(ctx context.Context, q ThreadQuery) iter.Seq2[*ListedThread, error] {
	return func(yield func(*ListedThread, error) bool) {
		for l, err := range s.engine.ListThreads(ctx, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&ListedThread{Thread: &Thread{store: s, id: l.ID}, Was: infoOf(l), Page: l.Token()}, nil) {
				return
			}
		}
	}
}

// infoOf returns a thread as it is listed.
func infoOf(l backend.ThreadListing) ThreadInfo {
	info := *threadInfo(l.Thread)
	info.UpdatedAt, info.LastMessage = l.Updated(), l.LastMessage
	return info
}

// Contexts yields the contexts that belong to no thread, oldest first. Those of threads are
// listed by Thread.Contexts.
func (s *Store) Contexts(ctx context.Context) iter.Seq2[*Context, error] {
	return s.handles(s.engine.ContextsAlone(ctx, structure.ContextID{}))
}

// handles returns the contexts of a listing.
func (s *Store) handles(all iter.Seq2[backend.Context, error]) iter.Seq2[*Context, error] {
	return func(yield func(*Context, error) bool) {
		for c, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&Context{store: s, id: c.ID}, nil) {
				return
			}
		}
	}
}
