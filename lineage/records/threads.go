package records

import (
	"encoding/json"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/internal/rawjson"
)

// Branch is a branch.
type Branch struct {
	Name    string `json:"name"`
	Thread  string `json:"thread"`
	Context string `json:"context"`
	// Head is the last message of its history.
	Head      *string   `json:"head"`
	Active    bool      `json:"active"`
	Length    uint64    `json:"length"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

func (*Branch) RecordType() string { return "branch" }

// Checkpoint is a checkpoint.
type Checkpoint struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Thread string `json:"thread"`
	// Message is the message that it names. Position is its position in its history.
	Message   string    `json:"message"`
	Position  uint64    `json:"position"`
	CreatedAt time.Time `json:"created_at"`
}

func (*Checkpoint) RecordType() string { return "checkpoint" }

// Thread is a thread.
type Thread struct {
	ID string `json:"id"`
	// SourceID is the id chosen by the creator.
	SourceID string `json:"source_id,omitempty"`
	User     string `json:"user,omitempty"`
	Title    string `json:"title,omitempty"`
	// ShownTitle is the title that lists show: the title, or else the start of the first prompt. Only thread list has it.
	ShownTitle string `json:"shown_title,omitempty"`
	// Branch is the active branch, and Context is its context. Both are empty if there is none.
	Branch  string `json:"branch"`
	Context string `json:"context,omitempty"`
	// Branches is the number of branches. Messages is the number of messages of the active one.
	Branches int    `json:"branches"`
	Messages uint64 `json:"messages"`
	// SubagentMessages is the number of messages of subagents. It is only counted if the active branch has no messages.
	SubagentMessages uint64 `json:"subagent_messages,omitempty"`
	// Usage is the usage of the answers that count in the thread. Only thread list and thread show have it.
	Usage *UsageFigures `json:"usage,omitempty"`
	// Current is set for the thread that commands work on.
	Current   bool            `json:"current,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	// Next is the token for --after. It is set for the last thread of a page.
	Next string `json:"next,omitempty"`
}

func (*Thread) RecordType() string { return "thread" }

// Deleted is something that was deleted.
type Deleted struct {
	// What is thread, branch, checkpoint, context, summary, content or user.
	What string `json:"what"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Threads, Messages and Values count what was deleted with a user. A database does not count messages.
	Threads  int    `json:"threads,omitempty"`
	Messages uint64 `json:"messages,omitempty"`
	Values   int    `json:"values,omitempty"`
}

func (*Deleted) RecordType() string { return "deleted" }

// MessageCount returns the number of messages for people: "5", or "0+4" if only subagents have messages.
func (r *Thread) MessageCount() string { return MessageCount(r.Messages, r.SubagentMessages) }

// MessageCount is Thread.MessageCount for other records of a thread.
func MessageCount(messages, ofSubagents uint64) string {
	if ofSubagents == 0 {
		return amount.Count(messages)
	}
	return amount.Count(messages) + "+" + amount.Count(ofSubagents)
}

// States returns a text in the thread's metadata, empty for none.
func (r *Thread) States(key string) string {
	if !rawjson.Valid(r.Metadata) {
		return ""
	}
	return rawjson.Str(rawjson.Get(r.Metadata, key))
}
