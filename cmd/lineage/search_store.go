package main

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/search"
	"github.com/lineage-store/lineage/structure"
)

// searchStore searches the threads of a store, through an index that is kept beside it.
func searchStore(ctx context.Context, a *app, o *searchOptions) error {
	return a.read(ctx, func(ctx context.Context, s *session) (err error) {
		line := s.progress("indexing", func(n int64) string { return screen.Plural(n, "thread") })
		index, err := search.Open(ctx, s.store, s.dir, search.Options{Progress: func(r sqladapter.ProjectReport) {
			line.Show(int64(r.Threads), int64(r.Total))
		}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, index.Close()) }()
		hits, err := findHits(o.limit, func(limit int) ([]chat.SearchResult, error) {
			options := chat.SearchOptions{Roles: o.roles, Limit: limit}
			if s.namedThread() == "" {
				return s.addressed(ctx)(index.SearchAll(ctx, o.user, o.query, options))
			}
			thread, err := s.store.View().Thread(ctx, s.thread.ID())
			if err != nil {
				return nil, err
			}
			return s.addressed(ctx)(index.SearchMessages(ctx, chat.IDOfThread(thread), o.query, options))
		})
		line.Done()
		if err != nil {
			return err
		}
		threads := make(map[string]*structure.Thread)
		for t, err := range s.store.View().Threads(ctx, lineage.ThreadID{}) {
			if err != nil {
				return err
			}
			threads[chat.IDOfThread(t)] = t
		}
		return s.printHits(hits, func(id string) (string, error) {
			switch t := threads[id]; {
			case t == nil:
				return "", nil
			case t.Title != "" || s.json:
				return t.Title, nil
			default:
				return s.beginning(ctx, t.ID)
			}
		}, func(id string) string {
			if t := threads[id]; t != nil {
				return refs.Short(t.ID)
			}
			return id
		})
	})
}

// addressed gives messages that were found their addresses in place of ids that callers
// chose: threads that share a message have one address for it.
func (s *session) addressed(ctx context.Context) func([]chat.SearchResult, error) ([]chat.SearchResult, error) {
	return func(found []chat.SearchResult, err error) ([]chat.SearchResult, error) {
		for i := range found {
			m := &found[i].Message
			thread, err := s.store.FindThread(ctx, m.ChatID)
			if err != nil {
				id, _ := structure.ParseID[lineage.ThreadID](m.ChatID)
				if thread, err = s.store.Thread(ctx, id); err != nil {
					continue // it was deleted since
				}
			}
			if e, err := thread.Find(ctx, m.ID); err == nil {
				m.ID = e.Span.String()
			}
		}
		return found, err
	}
}

// beginning returns what the list of threads shows of a thread without a title.
func (s *session) beginning(ctx context.Context, id lineage.ThreadID) (string, error) {
	thread, err := s.store.Thread(ctx, id)
	if err != nil {
		return "", err
	}
	r, err := s.threadRecord(ctx, thread)
	if err != nil {
		return "", err
	}
	return s.titleOf(ctx, r)
}
