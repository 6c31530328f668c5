package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A deleted context stays as a remnant while a context or another remnant is its child, because
// they inherit its overrides. A remnant is gone with its last child.

// setRemnant sets what is left of a context; nil for nothing.
func (j *judging) setRemnant(id structure.ContextID, remnant *structure.Remnant) error {
	change, ok := j.effects.Remnants.Get(id)
	if !ok {
		var err error
		if change.Was, err = j.View.Remnant(id); err != nil {
			return err
		}
	}
	change.Now = remnant
	j.effects.Remnants.set(id, change)
	return nil
}

// remnant states what is left of a context that was deleted elsewhere, or earlier.
func (j *judging) remnant(r *structure.Remnant) error {
	if r.ID.IsZero() {
		return refusal("context", r.ID, backend.ErrInvalid, "no id")
	}
	living, err := j.contextNow(r.ID)
	if err != nil {
		return err
	}
	if living != nil {
		if !j.Replay {
			return refusal("context", r.ID, backend.ErrExists, "it is not deleted")
		}
		// A collection has not yet replaced the earlier records of the context.
		change, _ := j.effects.Contexts.Get(r.ID)
		if change.Stated == nil {
			change = ContextChange{Was: living, Stated: living}
		}
		j.dropContext(r.ID, change)
	}
	was, err := j.remnantNow(r.ID)
	if err != nil {
		return err
	}
	if was == nil || was.Parent != r.Parent {
		if err := j.remnantRefs(r, was); err != nil {
			return err
		}
		j.children.add(r.Parent, r.ID)
	}
	j.stated = append(j.stated, r.ID)
	return j.setRemnant(r.ID, r)
}

func (j *judging) remnantRefs(r, was *structure.Remnant) error {
	if j.Replay {
		return nil
	}
	if was != nil {
		return refusal("context", r.ID, backend.ErrExists, "under the same id with another parent")
	}
	if r.Parent.IsZero() {
		return nil
	}
	there, err := j.exists(r.Parent)
	return required(there, err, "context", r.Parent)
}

// isStated reports whether the commit has stated a remnant. Only then contexts can be added below
// it.
func (j *judging) isStated(id structure.ContextID) (bool, error) {
	for _, s := range j.stated {
		if s == id {
			remnant, err := j.remnantNow(id)
			return remnant != nil, err
		}
	}
	return false, nil
}

// requireUsed refuses remnants that the commit states and that have no children.
func (j *judging) requireUsed() error {
	for _, id := range j.stated {
		remnant, err := j.remnantNow(id)
		if err == nil && remnant == nil {
			continue
		}
		used := false
		if err == nil {
			used, err = j.hasChild(id)
		}
		if err == nil && !used {
			err = refusal("context", id, backend.ErrInvalid, "it is deleted and nothing was forked from it")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isChild reports whether a context or remnant is there and has a parent. Without a change in
// the commit, the view says so.
func (j *judging) isChild(parent, id structure.ContextID, inView bool) bool {
	context, changed := j.effects.Contexts.Get(id)
	if changed && context.Stated != nil {
		return context.Stated.Parent == parent
	}
	if remnant, ok := j.effects.Remnants.Get(id); ok {
		return remnant.Now != nil && remnant.Now.Parent == parent
	}
	return inView && !changed
}

// hasChild reports whether a context has a child now. Each child is looked at once in a commit,
// so the children of a context can be deleted one by one.
func (j *judging) hasChild(parent structure.ContextID) (bool, error) {
	last := j.lastChildren[parent]
	if !last.found.IsZero() && j.isChild(parent, last.found, true) {
		return true, nil
	}
	last.found = structure.ContextID{}
	for last.found.IsZero() {
		next, ok, err := j.View.NextChild(parent, last.id)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		if last.id = next; j.isChild(parent, next, true) {
			last.found = next
		}
	}
	added := j.children.get(parent)
	for ; last.found.IsZero() && last.before < len(added); last.before++ {
		if id := added[last.before]; j.isChild(parent, id, false) {
			last.found = id
		}
	}
	if j.lastChildren == nil {
		j.lastChildren = make(map[structure.ContextID]lastChild)
	}
	j.lastChildren[parent] = last
	return !last.found.IsZero(), nil
}

// leave makes a context that was just deleted a remnant, if it has a child.
func (j *judging) leave(c *backend.Context) error {
	has, err := j.hasChild(c.ID)
	if err != nil {
		return err
	}
	if has {
		return j.setRemnant(c.ID, c.Remnant())
	}
	return j.release(c.Parent)
}

// release drops a remnant that has lost its last child, and then its parent.
func (j *judging) release(id structure.ContextID) error {
	for !id.IsZero() {
		remnant, err := j.remnantNow(id)
		if err != nil || remnant == nil {
			return err
		}
		has, err := j.hasChild(id)
		if err != nil || has {
			return err
		}
		if err := j.setRemnant(id, nil); err != nil {
			return err
		}
		id = remnant.Parent
	}
	return nil
}

// takePlace ends the remnant whose id a new context has. It reports whether there was one.
func (j *judging) takePlace(c *structure.Context) (bool, error) {
	was, err := j.remnantNow(c.ID)
	if err != nil || was == nil {
		return false, err
	}
	if was.Parent != c.Parent && !j.Replay {
		return false, refusal("context", c.ID, backend.ErrExists, "deleted, with forks and another parent")
	}
	if err := j.setRemnant(c.ID, nil); err != nil || was.Parent == c.Parent {
		return true, err
	}
	return true, j.release(was.Parent)
}

func (k *keys) remnant(r *structure.Remnant) {
	for _, id := range []structure.ContextID{r.ID, r.Parent} {
		if !id.IsZero() {
			k.context(id)
			k.add(Key{Kind: KeyRemnant, ID: id})
		}
	}
	k.add(Key{Kind: KeyLine, ID: r.ID})
}
