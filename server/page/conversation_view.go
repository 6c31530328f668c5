package page

import (
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/render"
)

// conversationView is a window of a history.
type conversationView struct {
	*subject
	Messages []*render.Message
	// From and To are the positions of the window. Length is the length of the history.
	From, To, Length uint64
	// At is the position of the requested message, or 0.
	At        uint64
	Branches  []*besideRow
	Subagents []*besideRow
	// More is set if there are more branches than listed.
	More    bool
	Prompts []*render.Message
	Notice  string
	// Graph is the part of the graph around the window, or nil if the graph has nothing but this history.
	Graph *graphView

	subagents []*subagent
}

// besideRow is another context of the thread.
type besideRow struct {
	Name, Href string
	Here       bool
}

// subagent is a subagent of a conversation.
type subagent struct {
	context lineage.ContextID
	tip     lineage.SpanRef
	// after is the position after which the subagent forks off, or 0 if it has a separate history. length is the
	// length of its history.
	after, length uint64
	// agent is its id in the agent's files, or empty if it is unknown.
	agent string
	title string
}
