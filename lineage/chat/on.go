package chat

import (
	"context"

	"github.com/lineage-store/lineage/lineage"
)

// On returns the chats in a lineage store. It has no state of its own: any number of them may be created for a store,
// and the owner of the store closes it.
//
// A chat is a thread that keeps its messages. Its id is the source id of the thread. A message is a span of the
// thread, and its id is the source id that it was added with. Branches and checkpoints are those of the thread. So
// threads and messages from other sources, such as an agent that uses the library, are visible too. If they have no
// id of their own, or if a thread shares them with another one, their ids are derived from the thread and the span.
// Ids of messages and checkpoints are unique in a chat, but not in the store: several chats may have the same. For
// erased content see Message.Data. These chats cannot be searched: see OnSearchable.
//
// The store may be that of a transaction: changes are then part of it.
func On(store *lineage.Store) Store { return OnSearchable(store, nil) }

// OnSearchable is On with a searcher. Package lineage/search has one.
func OnSearchable(store *lineage.Store, by Searcher) Store {
	return &onStore{state: latest(store), searcher: by}
}

type onStore struct {
	state
	searcher Searcher
}

// SearchMessages implements Store.
func (s *onStore) SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error) {
	if s.searcher == nil {
		return nil, ErrSearchUnavailable
	}
	return s.searcher.SearchMessages(ctx, chatID, query, o)
}
