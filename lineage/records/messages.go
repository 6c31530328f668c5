package records

import (
	"encoding/json"
	"time"

	"github.com/lineage-store/lineage/structure"
)

// Erased is the result of erase, or of its dry run.
type Erased struct {
	ContentID string `json:"content_id"`
	// Uses is the number of messages, documents and files that use the content.
	Uses int `json:"uses"`
	// Summaries are the content ids of summaries of such messages. They may repeat the content.
	Summaries []string `json:"summaries"`
	// Titles are the threads whose title is the start of the text.
	Titles []string `json:"titles"`
	// Erased is false for a dry run.
	Erased bool `json:"erased"`
	// Stays is set if the content is not erased with its message because other messages have it too.
	Stays bool `json:"stays,omitempty"`
}

func (*Erased) RecordType() string { return "erased" }

// Message is a message, or another use of content, in a history.
type Message struct {
	// ID is the address of its span. A message that is not the first one in its span has .N after it.
	ID string `json:"id"`
	// Parent is the id of the previous message.
	Parent   *string `json:"parent"`
	Position uint64  `json:"position"`
	// Kind is message, document or asset.
	Kind string `json:"kind"`
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
	// Document, Revision and Filename describe documents and assets.
	Document  string `json:"document,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	Filename  string `json:"filename,omitempty"`
	ContentID string `json:"content_id"`
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	// Text is empty for media that is not text.
	Text string `json:"text"`
	// Data is the body if it is JSON.
	Data json.RawMessage `json:"data,omitempty"`
	// Truncated is set if the text is only the start.
	Truncated bool `json:"truncated,omitempty"`
	Erased    bool `json:"erased,omitempty"`
	// Origin states the author.
	Origin   *Origin `json:"origin,omitempty"`
	SourceID string  `json:"source_id,omitempty"`
	SpanSet  string  `json:"span_set,omitempty"`
	// Usage is the usage that the message states, with its cost. Only show has it.
	Usage    *UsageFigures   `json:"usage,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// CreatedAt is in RFC 3339.
	CreatedAt time.Time `json:"created_at"`
}

func (*Message) RecordType() string { return "message" }

// Origin is where content comes from; it is part of other records.
type Origin struct {
	Kind   string `json:"kind"`
	User   string `json:"user,omitempty"`
	Model  string `json:"model,omitempty"`
	Source string `json:"source,omitempty"`
	// DerivedFrom is the content that it was derived or edited from.
	DerivedFrom string `json:"derived_from,omitempty"`
}

// Content is a content with its first origin.
type Content struct {
	ID string `json:"id"`
	// Step counts from the requested content, which is 0.
	Step      int     `json:"step"`
	MediaType string  `json:"media_type,omitempty"`
	Size      int64   `json:"size"`
	Origin    *Origin `json:"origin,omitempty"`
	// Missing is set if it is no longer in the store.
	Missing   bool       `json:"missing,omitempty"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
}

func (*Content) RecordType() string { return "content" }

// Part is a message to send, or a summary that replaces several.
type Part struct {
	// Message is set for a message, Summary for a summary.
	Message *Message `json:"message,omitempty"`
	Summary *Summary `json:"summary,omitempty"`
	Tokens  int      `json:"tokens"`
}

func (*Part) RecordType() string { return "part" }

// Resolved is the last record of resolve.
type Resolved struct {
	SystemPrompt string `json:"system_prompt,omitempty"`
	Model        string `json:"model,omitempty"`
	Parts        int    `json:"parts"`
	// Tokens is an estimate of all tokens.
	Tokens int `json:"tokens"`
	// Omitted is the number of messages that are neither included nor summarized.
	Omitted uint64 `json:"omitted"`
	// Digest identifies the history that it was resolved from.
	Digest string `json:"digest"`
}

func (*Resolved) RecordType() string { return "resolved" }

// Hit is a search result.
type Hit struct {
	// ID is the address of a message, document or asset, or the id of a summary. In a database it is the id of the
	// message.
	ID string `json:"id"`
	// Threads are the threads that contain it.
	Threads []HitThread `json:"threads"`
	// Role is the role of a message. In a store it is tool for only results of tools, whatever role their format gives them.
	Role string `json:"role,omitempty"`
	// Rank orders the hits; higher is better.
	Rank float64 `json:"rank"`
	// Snippet is the place of the match. The matching words are between <mark> and </mark>.
	Snippet string `json:"snippet"`
	Text    string `json:"text"`
	// Kind is message, document, asset or summary. Name is the name of a document or asset.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// Contexts are the contexts outside threads that contain it.
	Contexts []string `json:"contexts,omitempty"`
}

// HitThread is a thread with a hit. In a database its id is that of the chat.
type HitThread struct {
	ID string `json:"id"`
	// SourceID is the id chosen by the creator.
	SourceID string `json:"source_id,omitempty"`
	Title    string `json:"title,omitempty"`
}

// NewHitThread returns the record of a thread with a hit.
func NewHitThread(t *structure.Thread) HitThread {
	return HitThread{ID: t.ID.String(), SourceID: t.SourceID, Title: t.Title}
}

func (*Hit) RecordType() string { return "hit" }

// Node is a message in a tree.
type Node struct {
	ID        string  `json:"id"`
	Parent    *string `json:"parent"`
	Position  uint64  `json:"position"`
	Role      string  `json:"role"`
	ContentID string  `json:"content_id,omitempty"`
	// Preview is the start of its text.
	Preview   string    `json:"preview"`
	SpanSet   string    `json:"span_set,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

func (*Node) RecordType() string { return "node" }
