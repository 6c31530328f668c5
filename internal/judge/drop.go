package judge

import "github.com/lineage-store/lineage/structure"

// dropContext deletes a context and what belongs to it.
func (j *judging) dropContext(id structure.ContextID, change ContextChange) {
	j.effects.Counts.Contexts--
	change.Stated = nil
	j.effects.Contexts.set(id, change)
	j.effects.Tips.drop(id)
	j.dropNotes(id)
	j.dropValues(structure.Owner{Scope: structure.ContextScope, Context: id})
}

// dropNotes drops the summaries and reflog entries that the commit added to a context.
func (j *judging) dropNotes(id structure.ContextID) {
	for _, i := range j.summaries.get(id) {
		j.effects.Summaries[i].Is = nil
	}
	for _, i := range j.reflog.get(id) {
		j.effects.Reflog[i].Is = nil
	}
}

// dropValues drops the commit's changes so far to the values of an owner.
func (j *judging) dropValues(owner structure.Owner) {
	for _, key := range j.values.get(owner) {
		j.effects.Values.drop(key)
	}
}
