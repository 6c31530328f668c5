package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func (j *judging) thread(t *structure.Thread) error {
	if t.ID.IsZero() {
		return refusal("thread", t.ID, backend.ErrInvalid, "no id")
	}
	if !t.Active.IsZero() {
		if err := j.requireContext(t.Active); err != nil {
			return err
		}
	}
	change, err := j.threadChange(t.ID)
	if err != nil {
		return err
	}
	switch {
	case change.Now == nil:
		j.effects.Counts.Threads++
	case change.Now.Incarnation != t.Incarnation:
		j.dropThreadValues(t.ID)
	}
	change.Now = t
	j.effects.Threads.set(t.ID, change)
	return nil
}

func (k *keys) thread(t *structure.Thread) {
	k.add(Key{Kind: KeyThread, ID: t.ID})
	if !t.Active.IsZero() {
		k.context(t.Active)
	}
}

// deleteThread deletes a thread with its contexts and names. Spans and content stay until
// they are collected.
func (j *judging) deleteThread(id structure.ThreadID) error {
	change, err := j.threadChange(id)
	switch {
	case err != nil:
		return err
	case change.Now != nil:
		j.effects.Counts.Threads--
		change.Now = nil
		j.effects.Threads.set(id, change)
	case !j.Replay:
		return refusal("thread", id, backend.ErrNotFound, "")
	}
	if err := j.branchNames().dropAll(id); err != nil {
		return err
	}
	if err := j.checkpointNames().dropAll(id); err != nil {
		return err
	}
	j.dropThreadValues(id)
	stored, err := j.View.Members(id)
	if err != nil {
		return err
	}
	for _, c := range stored {
		if err := j.dropMember(id, c.ID, c); err != nil {
			return err
		}
	}
	for _, c := range j.members.get(id) {
		if err := j.dropMember(id, c, nil); err != nil {
			return err
		}
	}
	return nil
}

// dropMember deletes a context if it is in the thread.
func (j *judging) dropMember(id structure.ThreadID, context structure.ContextID, was *backend.Context) error {
	change, ok := j.effects.Contexts.Get(context)
	if !ok {
		change = ContextChange{Was: was, Stated: was}
	}
	if change.Stated == nil || change.Stated.Thread != id {
		return nil
	}
	stated := change.Stated
	j.dropContext(context, change)
	return j.leave(stated)
}

// deleteThread adds the keys of everything that belongs to the thread.
func (k *keys) deleteThread(id structure.ThreadID) {
	k.add(Key{Kind: KeyThread, ID: id})
	k.add(Key{Kind: KeyOfThread, ID: id})
	for _, c := range k.members.get(id) {
		k.add(Key{Kind: KeyLine, ID: c})
	}
}
