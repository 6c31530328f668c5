package write

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// mostFound limits the messages with one source id that a transaction reads.
const mostFound = 1000

type sourceRead struct {
	thread structure.ThreadID
	id     string
}

// Find implements backend.Reader.
func (s *Stage) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	if thread.IsZero() {
		return s.findAnywhere(ctx, sourceID, after)
	}
	return func(yield func(backend.Found, error) bool) {
		all, err := s.found(ctx, sourceID, thread)
		if err != nil {
			yield(backend.Found{}, err)
			return
		}
		if after != (backend.Found{}) {
			all = all[slices.Index(all, after)+1:]
		}
		for _, f := range all {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// findAnywhere is Find in all threads. It reads lazily. Expected are what was found in each thread that was
// read, and that no thread has the source id if nothing was found.
func (s *Stage) findAnywhere(ctx context.Context, sourceID string, after backend.Found) iter.Seq2[backend.Found, error] {
	return func(yield func(backend.Found, error) bool) {
		if err := s.alive(); err != nil {
			yield(backend.Found{}, err)
			return
		}
		in := func(thread structure.ThreadID) bool {
			for f, err := range s.Find(ctx, sourceID, thread, backend.Found{}) {
				if !yield(f, err) || err != nil {
					return false
				}
			}
			return true
		}
		seen := make(map[structure.ThreadID]bool)
		for f, err := range s.Reader.Find(ctx, sourceID, structure.ThreadID{}, after) {
			if err != nil {
				yield(backend.Found{}, err)
				return
			}
			if seen[f.Home.Thread] {
				continue
			}
			seen[f.Home.Thread] = true
			if !in(f.Home.Thread) {
				return
			}
		}
		if len(seen) == 0 && after == (backend.Found{}) && s.first(sourceRead{id: sourceID}) {
			s.batch.Sources = append(s.batch.Sources, backend.ExpectSource{SourceID: sourceID})
		}
		for _, own := range s.sources[sourceID] {
			if thread := own.Home.Thread; !seen[thread] {
				seen[thread] = true
				if !in(thread) {
					return
				}
			}
		}
	}
}

// found returns the results of Find in a thread.
func (s *Stage) found(ctx context.Context, sourceID string, thread structure.ThreadID) ([]backend.Found, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	var all []backend.Found
	var spans []structure.SpanRef
	for f, err := range s.Reader.Find(ctx, sourceID, thread, backend.Found{}) {
		if err != nil {
			return nil, err
		}
		if len(all) == mostFound {
			return nil, &backend.SubjectError{Subject: "source id", ID: sourceID, Err: backend.ErrTooLarge, Detail: "too many messages have it"}
		}
		spans = append(spans, f.Span)
		if !s.isOver(f.Home) {
			all = append(all, f)
		}
	}
	if s.first(sourceRead{thread, sourceID}) {
		s.batch.Sources = append(s.batch.Sources, backend.ExpectSource{SourceID: sourceID, Thread: thread, Spans: spans})
	}
	for _, f := range s.sources[sourceID] {
		if f.Home.Thread == thread && !s.isOver(f.Home) {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b backend.Found) int {
		return cmp.Compare(b.Lookup, a.Lookup)
	})
	return all, nil
}
