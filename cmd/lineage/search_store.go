package main

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/search"
)

// searchStore searches the chats of a store, through an index that is kept beside it.
func searchStore(ctx context.Context, a *app, o *searchOptions) error {
	return a.read(ctx, func(ctx context.Context, s *session) (err error) {
		line := s.progress("indexing", func(n int64) string { return screen.Plural(n, "chat") })
		index, err := search.Open(ctx, s.store, s.dir, &search.Options{Progress: func(r sqladapter.ProjectReport) {
			line.Show(int64(r.Threads), int64(r.Total))
		}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, index.Close()) }()
		options := chat.SearchOptions{Roles: o.roles, Limit: o.limit}
		var results []chat.SearchResult
		if s.namedChat() == "" {
			results, err = index.SearchAll(ctx, o.user, o.query, options)
		} else {
			thread, findErr := s.store.Engine().Thread(ctx, s.thread.ID())
			if findErr != nil {
				return findErr
			}
			results, err = index.SearchMessages(ctx, chat.IDOfThread(thread), o.query, options)
		}
		line.Done()
		if err != nil {
			return err
		}
		for i := range results {
			results[i].Message.ID = refs.WithoutThread(results[i].Message.ID)
		}
		return s.printHits(results)
	})
}
