package search

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Chats returns the chats of the store, with search.
func (x *Index) Chats() chat.Store { return chat.OnSearchable(x.store, x) }

// SearchMessages implements chat.Searcher on the current content of the store.
func (x *Index) SearchMessages(ctx context.Context, chatID, text string, o chat.SearchOptions) (results []chat.SearchResult, err error) {
	for found, err := range x.MessagesOf(ctx, chatID, text, o) {
		if err != nil {
			return nil, err
		}
		results = append(results, found)
	}
	return results, nil
}

// MessagesOf yields what SearchMessages returns. Each message is read when it is yielded.
func (x *Index) MessagesOf(ctx context.Context, chatID, text string, o chat.SearchOptions) iter.Seq2[chat.SearchResult, error] {
	return func(yield func(chat.SearchResult, error) bool) {
		t, _, err := chat.Spans(ctx, x.store, chatID)
		if errors.Is(err, lineage.ErrNotFound) {
			return
		}
		var hits []Hit
		if err == nil {
			hits, err = x.Search(ctx, Query{Thread: t.ID, Text: text, Roles: o.Roles, Limit: o.Limit, steps: true})
		}
		if err != nil {
			yield(chat.SearchResult{}, err)
			return
		}
		r := chat.NewThreadReader(x.store, x.store.View(), t, nil)
		for i := range hits {
			m, err := r.MessageAt(ctx, hits[i].Entry.Span)
			if errors.Is(err, lineage.ErrNotFound) {
				continue // deleted meanwhile
			}
			if !yield(chat.SearchResult{Message: m, Rank: hits[i].Rank, Snippet: hits[i].Snippet}, err) || err != nil {
				return
			}
		}
	}
}
