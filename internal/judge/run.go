package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// run accepts a new run, or refuses it.
func (j *Judge) run(r *structure.Run) error {
	if r.ID.IsZero() {
		return refusal("run", r.ID, backend.ErrInvalid, "no id")
	}
	if !j.Replay {
		if _, known, err := j.runInfo(r.ID); err != nil {
			return err
		} else if known {
			return refusal("run", r.ID, backend.ErrExists, "")
		}
	}
	if err := j.requireSpan(r.Parent); err != nil {
		return err
	}
	info := structure.RunInfo{Run: *r}
	if !r.Parent.IsZero() {
		parent, known, err := j.runInfo(r.Parent.Run)
		if err := required(known, err, "run", r.Parent.Run); err != nil {
			return err
		}
		info.Depth = parent.Position(r.Parent.Seq)
		if info.Digest, err = j.digest(r.Parent); err != nil {
			return err
		}
	}
	j.effects.Counts.Runs++
	j.effects.Runs.set(r.ID, info)
	j.effects.Ends.set(r.ID, End{Digest: info.Digest})
	return nil
}

// run adds the keys that Judge.run reads.
func (k *keys) run(r *structure.Run) {
	k.add(Key{Kind: KeyRun, ID: r.ID})
	k.homes[r.ID] = r.Home
	if r.Parent.IsZero() {
		return
	}
	k.add(Key{Kind: KeyRun, ID: r.Parent.Run})
	k.span(r.Parent)
	k.digest(r.Parent)
}

func (j *Judge) runInfo(id structure.RunID) (structure.RunInfo, bool, error) {
	if info, ok := j.effects.Runs.Get(id); ok {
		return info, true, nil
	}
	return j.View.Run(id)
}

// cut closes a run. Only collections write cuts, as replacements of spans.
func (j *Judge) cut(r *structure.Cut) error {
	if !j.Replay {
		return refusal("cut", r.Run, backend.ErrInvalid, "only a collection writes it")
	}
	j.effects.Cuts = append(j.effects.Cuts, r.Run)
	return nil
}

func (j *Judge) spanSet(s *structure.SpanSet) error {
	if s.ID.IsZero() {
		return refusal("span set", s.ID, backend.ErrInvalid, "no id")
	}
	if !j.Replay {
		if known, err := j.hasSet(s.ID); err != nil {
			return err
		} else if known {
			return refusal("span set", s.ID, backend.ErrExists, "")
		}
	}
	if err := j.requireSpan(s.Parent); err != nil {
		return err
	}
	j.effects.Sets.set(s.ID, s)
	return nil
}

func (k *keys) spanSet(s *structure.SpanSet) {
	k.set(s.ID)
	k.span(s.Parent)
}

// set adds the key of a span set, if there is one.
func (k *keys) set(id structure.SpanSetID) {
	if !id.IsZero() {
		k.add(Key{Kind: KeySet, ID: id})
	}
}

func (j *Judge) hasSet(id structure.SpanSetID) (bool, error) {
	if _, ok := j.effects.Sets.Get(id); ok {
		return true, nil
	}
	return j.View.HasSet(id)
}

func (j *Judge) requireSet(id structure.SpanSetID) error {
	if j.Replay {
		return nil
	}
	there, err := j.hasSet(id)
	return required(there, err, "span set", id)
}
