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
	// Filled is set when something was appended to it.
	Filled bool `json:"filled"`
	// Chosen is set when the context that it is offered to continues with it.
	Chosen bool   `json:"chosen"`
	Text   string `json:"text,omitempty"`
	// Number and Of count the alternatives to a message. ID is the message that it begins with, and
	// Tip where its line ends.
	Number int    `json:"number,omitempty"`
	Of     int    `json:"of,omitempty"`
	ID     string `json:"id,omitempty"`
	Tip    string `json:"tip,omitempty"`
	// InputTokens and OutputTokens are the tokens of the answer; Reported is set where its messages report them, and
	// otherwise they are estimated. TookMS is the time from the question to the end of the answer.
	InputTokens  int  `json:"input_tokens,omitempty"`
	OutputTokens int  `json:"output_tokens,omitempty"`
	Reported     bool `json:"reported,omitempty"`
	// Usage is what its messages state of the answers of models, and what that costs.
	Usage  *UsageFigures `json:"usage,omitempty"`
	TookMS int64         `json:"took_ms,omitempty"`
}

func (*Alternative) RecordType() string { return "alternative" }

// Appended is what was added to a context.
type Appended struct {
	Context string `json:"context"`
	Branch  string `json:"branch,omitempty"`
	Thread  string `json:"thread,omitempty"`
	// IDs are the messages that were added, in order.
	IDs []string `json:"ids"`
	// Tip is the last of them, the new tip of the context, and Length how many
	// messages its history has.
	Tip    string `json:"tip"`
	Length uint64 `json:"length"`
}

func (*Appended) RecordType() string { return "appended" }

// Context is a context as it is now.
type Context struct {
	ID string `json:"id"`
	// Thread is the id of the thread that it belongs to.
	Thread string `json:"thread,omitempty"`
	// Kind is branch, fork, subagent, edit, alternative, or records for what an import keeps beside
	// the messages.
	Kind string `json:"kind"`
	// Branch is its name, for a branch.
	Branch string `json:"branch,omitempty"`
	// Active is set for the active branch of its thread.
	Active bool `json:"active,omitempty"`
	// Parent is the context that it was forked or spawned from.
	Parent string `json:"parent,omitempty"`
	// Base is the message that it started at, and Tip the last of its history.
	Base *string `json:"base"`
	Tip  *string `json:"tip"`
	// Length is how many messages its history has.
	Length uint64 `json:"length"`
	// SpanSet is the set that it fills an alternative of.
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
	// From is the tip before the move, and To the tip after it.
	From   *string `json:"from"`
	To     *string `json:"to"`
	Length uint64  `json:"length"`
}

func (*Moved) RecordType() string { return "moved" }

// Merged is what a merge did.
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

// Move is a move in a context's past.
type Move struct {
	Context string `json:"context"`
	// Back counts from the last move, 1. CONTEXT@{-BACK} is the tip before the move.
	Back   int       `json:"back"`
	From   *string   `json:"from"`
	To     *string   `json:"to"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (*Move) RecordType() string { return "move" }

// Sent is a message that one context has from another.
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
	// ContentID is its text's.
	ContentID string `json:"content_id"`
	// First and Last are the positions of the messages that it summarizes.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Level is 0 for a summary of messages, more for one of summaries.
	Level     uint64    `json:"level"`
	Model     string    `json:"model,omitempty"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
	// Behind is how many messages follow those that it summarizes, in a list of a context's summaries.
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
