package graph

import (
	"encoding/json"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// Kind is what a label names: a checkpoint, or a kind of context.
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
	// Name is the name of a branch or checkpoint, and the short id of another context.
	Name string
	// Active is set for the active branch.
	Active bool
	// Context is the context, zero for a checkpoint and for what has no context.
	Context lineage.ContextID
	// About is what the metadata of the context say it is beside the conversation, empty for none. A subagent of an agent is
	// "agent" and its id there.
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

// aboutOf returns what is in Label.About.
func aboutOf(metadata []byte) string {
	if !rawjson.Valid(metadata) {
		return ""
	}
	return rawjson.Str(rawjson.Get(metadata, "aside"))
}

// KindOf returns what a context is. Subagents that see everything differ from other forks by their metadata only.
func KindOf(c *lineage.ContextInfo) Kind {
	var mark struct {
		MadeBy Kind `json:"made_by"`
		Aside  any  `json:"aside"`
	}
	_ = json.Unmarshal(c.Metadata, &mark) // metadata of another form marks nothing
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
