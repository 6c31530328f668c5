package graph

import (
	"encoding/json"

	"github.com/lineage-store/lineage/lineage"
)

// Kind is the kind of thing that a label names: a checkpoint, or a kind of context.
type Kind string

// The kinds of labels.
const (
	KindBranch      Kind = "branch"
	KindCheckpoint  Kind = "checkpoint"
	KindAlternative Kind = "alternative"
	KindSubagent    Kind = "subagent"
	KindEdit        Kind = "edit"
	KindFork        Kind = "fork"
	// KindRecords is for records that an import keeps beside the messages.
	KindRecords Kind = "records"
)

// Label is a name that points to a message.
type Label struct {
	Kind Kind
	// Name is the name of a branch or checkpoint, or the short id of another context.
	Name string
	// Active is set for the active branch.
	Active bool
	// Context is the context, zero for a checkpoint and for anything else without a context.
	Context lineage.ContextID
	// About is the aside stated in the metadata of the context, empty for none. For a subagent of an agent it is
	// "agent" and its id.
	About string
}

// String returns a label as people read it.
func (l Label) String() string {
	switch l.Kind {
	case KindBranch, KindCheckpoint:
		return l.Name
	}
	return string(l.Kind) + " " + l.Name
}

// KindOf returns the kind of a context. Only their metadata distinguishes subagents that see everything from other
// forks.
func KindOf(c *lineage.ContextInfo) Kind {
	var mark struct {
		MadeBy Kind `json:"made_by"`
		Aside  any  `json:"aside"`
	}
	_ = json.Unmarshal(c.Metadata, &mark) // metadata of another form has no mark
	switch {
	case c.Branch != "":
		return KindBranch
	case !c.Set.IsZero():
		return KindAlternative
	case lineage.BesideMessages(c.Metadata):
		return KindRecords
	case mark.MadeBy == KindEdit || mark.MadeBy == KindSubagent:
		return mark.MadeBy
	case mark.Aside != nil, c.Base.IsZero() && !c.Parent.IsZero():
		return KindSubagent
	}
	return KindFork
}
