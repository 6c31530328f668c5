package records

import "time"

// Followed is an event of follow.
type Followed struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	Agent string    `json:"agent,omitempty"`
	Path  string    `json:"path,omitempty"`
	Files int64     `json:"files,omitempty"`
	Bytes int64     `json:"bytes,omitempty"`
	// Soon is the number of files that the agent deletes within a week.
	Soon     int64    `json:"soon,omitempty"`
	Messages int64    `json:"messages,omitempty"`
	Threads  []string `json:"threads,omitempty"`
	Skipped  int64    `json:"skipped,omitempty"`
	Error    string   `json:"error,omitempty"`
	Reason   string   `json:"reason,omitempty"`
}

func (*Followed) RecordType() string { return "followed" }

// Agent is a folder of an agent in a listing.
type Agent struct {
	Agent    string `json:"agent,omitempty"`
	Path     string `json:"path"`
	State    string `json:"state"`
	Verified string `json:"verified,omitempty"`
	Files    int64  `json:"files"`
	Bytes    int64  `json:"bytes"`
	Unread   int64  `json:"unread"`
	LeftOut  int64  `json:"left_out"`
	Gone     int64  `json:"gone"`
	// Soon is the number of files that the agent deletes within a week.
	Soon     int64     `json:"soon"`
	Problems []Problem `json:"problems"`
}

func (*Agent) RecordType() string { return "agent" }

// Problem is part of other records.
type Problem struct {
	Path    string `json:"path"`
	Error   string `json:"error"`
	Skipped int64  `json:"skipped,omitempty"`
}

// Event is one effect of a commit.
type Event struct {
	Commit uint64    `json:"commit"`
	Time   time.Time `json:"time"`
	// Kind is what happened, such as "context extended".
	Kind    string `json:"kind"`
	Thread  string `json:"thread,omitempty"`
	Context string `json:"context,omitempty"`
	Parent  string `json:"parent,omitempty"`
	// Span is the new tip of the context, or the position of the checkpoint. From is the previous tip, or the span
	// before the added ones.
	Span string `json:"span,omitempty"`
	From string `json:"from,omitempty"`
	// Name is the name of a branch or checkpoint, the reason of a move, or the key of a value.
	Name string `json:"name,omitempty"`
	// Owner is the owner of a value.
	Owner      string `json:"owner,omitempty"`
	ContentID  string `json:"content_id,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	Summary    string `json:"summary,omitempty"`
	SpanSet    string `json:"span_set,omitempty"`
}

func (*Event) RecordType() string { return "event" }
