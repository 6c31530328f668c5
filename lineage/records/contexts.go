package records

import (
	"encoding/json"
	"time"
)

// Alternative is one of several continuations.
type Alternative struct {
	SpanSet string `json:"span_set,omitempty"`
	Context string `json:"context,omitempty"`
	Model   string `json:"model,omitempty"`
	// Filled is set if something was appended to it.
	Filled bool `json:"filled"`
	// Chosen is set if the context continues with it.
	Chosen bool   `json:"chosen"`
	Text   string `json:"text,omitempty"`
	// Number and Of count the alternatives to a message. ID is its first message, and Tip is the end of its line.
	Number int    `json:"number,omitempty"`
	Of     int    `json:"of,omitempty"`
	ID     string `json:"id,omitempty"`
	Tip    string `json:"tip,omitempty"`
	// InputTokens and OutputTokens are the tokens of the answer. If Reported is set, its messages state them.
	// Otherwise they are estimates. TookMS is the time from the question to the end of the answer.
	InputTokens  int  `json:"input_tokens,omitempty"`
	OutputTokens int  `json:"output_tokens,omitempty"`
	Reported     bool `json:"reported,omitempty"`
	// Usage is the usage that its messages state, with its cost.
	Usage  *UsageFigures `json:"usage,omitempty"`
	TookMS int64         `json:"took_ms,omitempty"`
}

func (*Alternative) RecordType() string { return "alternative" }

// Appended is the result of adding to a context.
type Appended struct {
	Context string `json:"context"`
	Branch  string `json:"branch,omitempty"`
	Thread  string `json:"thread,omitempty"`
	// IDs are the added messages, in order.
	IDs []string `json:"ids"`
	// Tip is the last of them, the new tip of the context. Length is the number of messages in its history.
	Tip    string `json:"tip"`
	Length uint64 `json:"length"`
}

func (*Appended) RecordType() string { return "appended" }

// Context is the current state of a context.
type Context struct {
	ID string `json:"id"`
	// Thread is the id of the thread that it belongs to.
	Thread string `json:"thread,omitempty"`
	// Kind is branch, fork, subagent, edit, alternative, or records for data that an import keeps beside the
	// messages.
	Kind string `json:"kind"`
	// Branch is the name of a branch.
	Branch string `json:"branch,omitempty"`
	// Active is set for the active branch of its thread.
	Active bool `json:"active,omitempty"`
	// Parent is the context that it was forked or spawned from.
	Parent string `json:"parent,omitempty"`
	// Base is the message that it started at. Tip is the last message of its history.
	Base *string `json:"base"`
	Tip  *string `json:"tip"`
	// Length is the number of messages in its history.
	Length uint64 `json:"length"`
	// SpanSet is the set of alternatives that it belongs to.
	SpanSet      string          `json:"span_set,omitempty"`
	SystemPrompt *string         `json:"system_prompt,omitempty"`
	Model        *string         `json:"model,omitempty"`
	Overrides    json.RawMessage `json:"overrides,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
}

func (*Context) RecordType() string { return "context" }

// Moved is a move of a context.
type Moved struct {
	Context string `json:"context"`
	Branch  string `json:"branch,omitempty"`
	// From is the tip before the move, To the tip after it.
	From   *string `json:"from"`
	To     *string `json:"to"`
	Length uint64  `json:"length"`
}

func (*Moved) RecordType() string { return "moved" }

// Merged is the result of a merge.
type Merged struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	Strategy string `json:"strategy"`
	// Common is the last message that both shared.
	Common *string `json:"common"`
	// Added are the messages that were appended.
	Added  []string `json:"added"`
	Tip    *string  `json:"tip"`
	Length uint64   `json:"length"`
}

func (*Merged) RecordType() string { return "merged" }

// Move is an entry of a context's reflog.
type Move struct {
	Context string `json:"context"`
	// Back counts from the last move, which is 1. CONTEXT@{-BACK} is the tip before the move.
	Back   int       `json:"back"`
	From   *string   `json:"from"`
	To     *string   `json:"to"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (*Move) RecordType() string { return "move" }

// Sent is a message that was sent from one context to another.
type Sent struct {
	From string `json:"from"`
	To   string `json:"to"`
	// ID is the message in the context that it was sent to.
	ID string `json:"id"`
}

func (*Sent) RecordType() string { return "sent" }

// Summary is a summary.
type Summary struct {
	ID      string `json:"id"`
	Context string `json:"context"`
	// ContentID is the content id of its text.
	ContentID string `json:"content_id"`
	// First and Last are the positions of the summarized messages.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Level is 0 for a summary of messages, greater for a summary of summaries.
	Level     uint64    `json:"level"`
	Model     string    `json:"model,omitempty"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
	// Behind is the number of messages after the summarized ones, in a list of a context's summaries.
	Behind *uint64 `json:"behind,omitempty"`
}

func (*Summary) RecordType() string { return "summary" }

// Value is a named value.
type Value struct {
	Key string `json:"key"`
	// Value is absent if the value was deleted.
	Value json.RawMessage `json:"value,omitempty"`
	// Context is the context that it was set in, for values of contexts.
	Context string    `json:"context,omitempty"`
	SetAt   time.Time `json:"set_at"`
}

func (*Value) RecordType() string { return "value" }
