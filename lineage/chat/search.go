package chat

import "context"

// DefaultSearchLimit is the limit of a search that has none.
const DefaultSearchLimit = 20

// SearchOptions narrow a search.
type SearchOptions struct {
	// Roles, when not empty, are the names of messages wanted.
	Roles []string `json:"roles,omitempty"`
	// Limit is the most results wanted. Default DefaultSearchLimit.
	Limit int `json:"limit,omitempty"`
}

// SearchResult is a message that matches.
type SearchResult struct {
	Message Message `json:"message"`
	// Rank orders the results: the higher, the better. It is about the chat alone:
	// what is in other chats has no part in it.
	Rank float64 `json:"rank"`
	// Snippet is where it matches, the words between <mark> and </mark>.
	Snippet string `json:"snippet,omitempty"`
}

// Searcher finds messages in the chats of a store.
type Searcher interface {
	// SearchMessages does what Store.SearchMessages says.
	SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error)
}
