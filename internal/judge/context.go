package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func (j *judging) context(c *structure.Context) error {
	if c.ID.IsZero() {
		return refusal("context", c.ID, backend.ErrInvalid, "no id")
	}
	change, changed := j.effects.Contexts.Get(c.ID)
	unused := !changed && j.View.Unused(c.ID)
	if !changed && !unused {
		var err error
		if change.Was, err = j.View.Context(c.ID); err != nil {
			return err
		}
		change.Stated = change.Was
	}
	was := change.Stated
	if was != nil && !j.Replay && (was.Thread != c.Thread || was.Parent != c.Parent || was.Base != c.Base) {
		return refusal("context", c.ID, backend.ErrExists, "under the same id with another thread, parent or base")
	}
	known := was != nil
	if !known && (!unused || j.effects.Remnants.Len() > 0) {
		var err error
		if known, err = j.takePlace(c); err != nil {
			return err
		}
	}
	if err := j.contextRefs(c, known); err != nil {
		return err
	}
	moved := Tip{Span: c.Tip, Commit: j.Commit.Number, At: j.millis}
	if was != nil { // stated again: that alone does not move it
		if tip := j.tipOf(was); tip.Span == c.Tip {
			moved = tip
		}
		j.effects.Tips.set(c.ID, moved)
	} else {
		j.effects.Counts.Contexts++
		j.members.add(c.Thread, c.ID)
		if !c.Parent.IsZero() {
			j.children.add(c.Parent, c.ID)
		}
		change.Created = true
	}
	change.Stated = &backend.Context{Context: *c, Moved: moved.Commit, MovedAt: moved.At}
	structure.Own(&change.Stated.Context)
	j.effects.Contexts.set(c.ID, change)
	return nil
}

// contextRefs requires everything that a context refers to. The parent of a context that is known,
// as a context or remnant, may have been deleted.
func (j *judging) contextRefs(c *structure.Context, known bool) error {
	if j.Replay {
		return nil
	}
	// What the parent refers to exists.
	var thread structure.ThreadID
	var tip structure.SpanRef
	if !c.Parent.IsZero() && !known {
		parent, err := j.contextNow(c.Parent)
		switch {
		case err != nil:
			return err
		case parent != nil:
			thread, tip = parent.Thread, j.tipOf(parent).Span
		default:
			stated, err := j.isStated(c.Parent)
			if err := required(stated, err, "context", c.Parent); err != nil {
				return err
			}
		}
	}
	if c.Thread != thread && !c.Thread.IsZero() {
		if err := j.requireThread(c.Thread); err != nil {
			return err
		}
	}
	if !c.Set.IsZero() {
		if err := j.requireSet(c.Set); err != nil {
			return err
		}
	}
	if c.Base != tip {
		if err := j.requireSpan(c.Base); err != nil {
			return err
		}
	}
	if c.Tip == tip {
		return nil
	}
	return j.requireSpan(c.Tip)
}

func (k *keys) contextRecord(c *structure.Context) {
	k.context(c.ID)
	k.add(Key{Kind: KeyRemnant, ID: c.ID})
	if !c.Parent.IsZero() {
		k.context(c.Parent)
	}
	if !c.Thread.IsZero() {
		k.add(Key{Kind: KeyThread, ID: c.Thread})
		k.members.add(c.Thread, c.ID)
	}
	k.set(c.Set)
	k.span(c.Base)
	k.span(c.Tip)
}

func (j *judging) tip(t *structure.Tip) error {
	c, err := j.contextNow(t.Context)
	if err == nil && !j.Replay {
		err = required(c != nil, nil, "context", t.Context)
	}
	if err != nil {
		return err
	}
	if err := j.requireSpan(t.Span); err != nil {
		return err
	}
	j.effects.Tips.set(t.Context, Tip{Span: t.Span, Commit: j.Commit.Number, At: j.millis})
	return nil
}

func (k *keys) tip(t *structure.Tip) {
	k.context(t.Context)
	k.span(t.Span)
}

// deleteContext deletes a context that no branch names.
func (j *judging) deleteContext(id structure.ContextID) error {
	change, ok := j.effects.Contexts.Get(id)
	if !ok {
		var err error
		if change.Was, err = j.View.Context(id); err != nil {
			return err
		}
		change.Stated = change.Was
	}
	if change.Stated == nil && j.Replay {
		return nil // collected
	}
	if err := required(change.Stated != nil, nil, "context", id); err != nil {
		return err
	}
	if !j.Replay && !change.Stated.Thread.IsZero() {
		if err := j.requireUnnamed(membership{change.Stated.Thread, id}); err != nil {
			return err
		}
	}
	was := change.Stated
	j.dropContext(id, change)
	return j.leave(was)
}

func (k *keys) deleteContext(id structure.ContextID) {
	k.context(id)
	k.add(Key{Kind: KeyNamesOf, ID: id})
	k.add(Key{Kind: KeyLine, ID: id})
}
