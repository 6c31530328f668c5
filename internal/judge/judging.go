package judge

import "github.com/lineage-store/lineage/structure"

// judging is a commit that is being judged. A method for each kind of record accepts a record, and adds to the effects, or
// refuses the commit.
type judging struct {
	state
	millis int64 // the time of the commit

	// Changes of the commit so far, by owner:
	members     groups[structure.ThreadID, structure.ContextID]
	branches    groups[structure.ThreadID, Name]
	checkpoints groups[structure.ThreadID, Name]
	named       groups[membership, string] // names of branches given to a context
	summaries   groups[structure.ContextID, int]
	reflog      groups[structure.ContextID, int]
	values      groups[structure.Owner, structure.ValueKey]
	children    groups[structure.ContextID, structure.ContextID]

	stated       []structure.ContextID // of remnants
	lastChildren map[structure.ContextID]lastChild
}

func (j *judging) reset() {
	j.state.Case = Case{}
	j.effects.reset()
	j.members.reset()
	j.branches.reset()
	j.checkpoints.reset()
	j.named.reset()
	j.summaries.reset()
	j.reflog.reset()
	j.values.reset()
	j.children.reset()
	j.stated, j.lastChildren = emptied(j.stated), nil
}

// membership is a context in a thread.
type membership struct {
	thread  structure.ThreadID
	context structure.ContextID
}

// lastChild is the last child of a context that was looked at.
type lastChild struct {
	id     structure.ContextID // in the view, whose children are in the order of their ids
	before int                 // number of children looked at that the commit added
	found  structure.ContextID // a child that was there
}
