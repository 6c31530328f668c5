package search

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

// Chats returns the chats of the store, with search.
func (x *Index) Chats() chat.Store { return chat.OnSearchable(x.store, x) }

// SearchMessages implements chat.Searcher on the current content of the store.
func (x *Index) SearchMessages(ctx context.Context, chatID, text string, o chat.SearchOptions) ([]chat.SearchResult, error) {
	q := Query{Text: text, Roles: o.Roles, Limit: o.Limit, steps: true}
	t, err := x.thread(ctx, chatID)
	if t != nil {
		q.Thread = t.ID
	}
	if err != nil || t == nil {
		return nil, err
	}
	hits, err := x.Search(ctx, q)
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

// thread returns the thread of a chat, nil if there is none.
func (x *Index) thread(ctx context.Context, chatID string) (*structure.Thread, error) {
	found, err := x.store.FindThread(ctx, chatID)
	var id lineage.ThreadID
	switch {
	case err == nil:
		id = found.ID()
	case !errors.Is(err, lineage.ErrNotFound):
		return nil, err
	default:
		if id, err = structure.ParseID[lineage.ThreadID](chatID); err != nil {
			return nil, nil
		}
	}
	t, err := x.store.View().Thread(ctx, id)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && chat.IDOfThread(t) != chatID {
		return nil, nil
	}
	return t, err
}
