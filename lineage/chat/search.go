package chat

import "context"

// DefaultSearchLimit is the limit of a search without one.
const DefaultSearchLimit = 20

// SearchOptions restrict a search.
type SearchOptions struct {
	// Roles, when not empty, are the names of the messages to search.
	Roles []string `json:"roles,omitempty"`
	// Limit is the maximum number of results. Default DefaultSearchLimit.
	Limit int `json:"limit,omitempty"`
}

// SearchResult is a message that matches.
type SearchResult struct {
	Message Message `json:"message"`
	// Rank orders the results: higher is better. It depends on this chat only.
	Rank float64 `json:"rank"`
	// Snippet is the place of the match. The matching words are between <mark> and </mark>.
	Snippet string `json:"snippet,omitempty"`
}

// Searcher finds messages in the chats of a store.
type Searcher interface {
	// SearchMessages implements Store.SearchMessages.
	SearchMessages(ctx context.Context, chatID, query string, o SearchOptions) ([]SearchResult, error)
}
