package records

import (
	"encoding/json"
	"strconv"
)

// Usage is the usage of models' answers: a row of a report, or their sum.
type Usage struct {
	// Total is set for the sum of all rows, which comes last.
	Total bool `json:"total,omitempty"`
	// The fields that identify the row. A field that the report does not ask for is absent. A field with an unknown
	// value is empty.
	Day       *string `json:"day,omitempty"`
	Week      *string `json:"week,omitempty"`
	Month     *string `json:"month,omitempty"`
	Agent     *string `json:"agent,omitempty"`
	Model     *string `json:"model,omitempty"`
	Provider  *string `json:"provider,omitempty"`
	Project   *string `json:"project,omitempty"`
	Thread    *string `json:"thread,omitempty"`
	Branch    *string `json:"branch,omitempty"`
	GitBranch *string `json:"git_branch,omitempty"`
	Machine   *string `json:"machine,omitempty"`
	Subagent  *string `json:"subagent,omitempty"`
	User      *string `json:"user,omitempty"`
	// Shared is set for answers in a thread that count in another one.
	Shared bool `json:"shared,omitempty"`
	UsageFigures
	// UnpricedModels are the models without a price. Prices is the date of the prices. Only the total has them.
	UnpricedModels []string `json:"unpriced_models,omitempty"`
	Prices         string   `json:"prices,omitempty"`
}

func (*Usage) RecordType() string { return "usage" }

// UsageFigures are tokens and costs. A number that no answer states is null.
type UsageFigures struct {
	// Requests is the number of answers.
	Requests int64 `json:"requests"`
	// InputTokens do not include tokens read from or written to a cache. OutputTokens include ReasoningTokens.
	InputTokens        *int64 `json:"input_tokens"`
	CachedInputTokens  *int64 `json:"cached_input_tokens"`
	CacheWriteTokens   *int64 `json:"cache_write_tokens"`
	CacheWrite1hTokens *int64 `json:"cache_write_1h_tokens"`
	OutputTokens       *int64 `json:"output_tokens"`
	ReasoningTokens    *int64 `json:"reasoning_tokens"`
	// Cost is in dollars; it is null if no answer has a price. Unpriced is the number of answers without a price.
	// Incomplete is the number of answers whose input or output is unknown.
	Cost       *json.Number `json:"cost"`
	Unpriced   int64        `json:"unpriced,omitempty"`
	Incomplete int64        `json:"incomplete,omitempty"`
	// StatedCost is the cost that the sources state for StatedRequests answers.
	StatedCost     *json.Number `json:"stated_cost,omitempty"`
	StatedRequests int64        `json:"stated_requests,omitempty"`
}

// WrittenTokens returns the number of tokens written to a cache, for any lifetime. It is nil if no answer states one.
func (f *UsageFigures) WrittenTokens() *int64 {
	if f.CacheWriteTokens == nil {
		return f.CacheWrite1hTokens
	}
	n := *f.CacheWriteTokens
	if f.CacheWrite1hTokens != nil {
		n += *f.CacheWrite1hTokens
	}
	return &n
}

// Money returns the cost for people, such as "$1.25", or "$0.0012" for a small one, with a plus if the cost is
// incomplete. It is empty if no cost is known.
func (f *UsageFigures) Money() string {
	if f == nil || f.Cost == nil {
		return ""
	}
	dollars, err := f.Cost.Float64()
	if err != nil {
		return ""
	}
	decimals := 2
	if dollars > 0 && dollars < 0.1 {
		decimals = 4
	}
	text := "$" + strconv.FormatFloat(dollars, 'f', decimals, 64)
	if f.Unpriced > 0 || f.Incomplete > 0 {
		text += "+"
	}
	return text
}
