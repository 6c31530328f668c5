package judge

import (
	"encoding/json"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// checkValue refuses a value that is invalid in every state.
func checkValue(v *structure.Value) error {
	if err := v.Check(); err != nil {
		return valueRefusal(v.ValueKey, backend.ErrInvalid, err.Error())
	}
	if v.JSON != nil && !json.Valid(v.JSON) {
		return valueRefusal(v.ValueKey, backend.ErrInvalid, "not JSON")
	}
	return nil
}

func valueRefusal(key structure.ValueKey, why error, detail string) error {
	return &backend.SubjectError{Subject: "value", ID: key.Name(), Err: why, Detail: detail}
}

func (j *judging) value(v *structure.Value) error {
	if err := j.valueRefs(v); err != nil {
		return err
	}
	j.effects.Values.set(v.ValueKey, v)
	j.values.add(v.Owner, v.ValueKey)
	return nil
}

// valueRefs requires everything that a value refers to.
func (j *judging) valueRefs(v *structure.Value) error {
	if j.Replay {
		return nil
	}
	switch v.Owner.Scope {
	case structure.ThreadScope:
		change, err := j.threadChange(v.Owner.Thread)
		if err := required(change.Now != nil, err, "thread", v.Owner.Thread); err != nil {
			return err
		}
		if change.Now.Incarnation != v.Incarnation {
			return valueRefusal(v.ValueKey, backend.ErrConflict, "the thread was deleted and created again")
		}
	case structure.ContextScope:
		if err := j.requireContext(v.Owner.Context); err != nil {
			return err
		}
		if v.Seen != structure.CollectedSpan {
			if err := j.requireSpan(v.Seen); err != nil {
				return err
			}
		}
	}
	if v.Content.IsZero() {
		return nil
	}
	return j.requireBlock(v.Content)
}

func (k *keys) value(v *structure.Value) {
	switch v.Owner.Scope {
	case structure.ThreadScope:
		k.add(Key{Kind: KeyThread, ID: v.Owner.Thread})
	case structure.ContextScope:
		k.context(v.Owner.Context)
		if v.Seen != structure.CollectedSpan {
			k.span(v.Seen)
		}
	}
	if !v.Content.IsZero() {
		k.add(Key{Kind: KeyBlock, Hash: v.Content})
	}
}

func (j *judging) dropThreadValues(id structure.ThreadID) {
	j.dropValues(structure.Owner{Scope: structure.ThreadScope, Thread: id})
	j.effects.ThreadsGone = append(j.effects.ThreadsGone, id)
}

// expectValue compares a value with the expectation of a commit.
func expectValue(v View, expect backend.ExpectValue) error {
	now, err := v.Value(expect.Key)
	switch {
	case err != nil || now == expect.Commit:
		return err
	case expect.Commit == 0:
		return valueRefusal(expect.Key, backend.ErrExists, "")
	case now == 0:
		return valueRefusal(expect.Key, backend.ErrNotFound, "")
	}
	return valueRefusal(expect.Key, backend.ErrConflict, "it has changed")
}
