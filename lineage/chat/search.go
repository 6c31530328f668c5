package chat

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
	// Rank orders the results: the lower, the better.
	Rank float64 `json:"rank"`
	// Snippet is where it matches, the words between <mark> and </mark>.
	Snippet string `json:"snippet,omitempty"`
}
