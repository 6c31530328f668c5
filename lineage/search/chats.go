package search

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Chats returns the chats of the store, with search.
func (x *Index) Chats() chat.Store { return chat.OnSearchable(x.store, x) }

// SearchMessages implements chat.Searcher on the current content of the store.
func (x *Index) SearchMessages(ctx context.Context, chatID, text string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	t, _, err := chat.Spans(ctx, x.store, chatID)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hits, err := x.Search(ctx, Query{Thread: t.ID, Text: text, Roles: o.Roles, Limit: o.Limit, steps: true})
	if err != nil {
		return nil, err
	}
	r := chat.NewThreadReader(x.store, x.store.View(), t, nil)
	var results []chat.SearchResult
	for i := range hits {
		m, err := r.MessageAt(ctx, hits[i].Entry.Span)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		results = append(results, chat.SearchResult{Message: m, Rank: hits[i].Rank, Snippet: hits[i].Snippet})
	}
	return results, nil
}
