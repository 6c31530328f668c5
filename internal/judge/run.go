package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// run accepts a new run, or refuses it.
func (j *judging) run(r *structure.Run) error {
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

// cut closes a run. Only collections write cuts, as replacements of spans.
func (j *judging) cut(r *structure.Cut) error {
	if !j.Replay {
		return refusal("cut", r.Run, backend.ErrInvalid, "only a collection writes it")
	}
	j.effects.Cuts = append(j.effects.Cuts, r.Run)
	return nil
}

func (j *judging) spanSet(s *structure.SpanSet) error {
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
