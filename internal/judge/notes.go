package judge

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func (j *judging) summary(i int, r *structure.Summary) error {
	if r.ID.IsZero() {
		return refusal("summary", r.ID, backend.ErrInvalid, "no id")
	}
	if err := j.requireContext(r.Context); err != nil {
		return err
	}
	if err := j.requireBlock(r.Content); err != nil {
		return err
	}
	if err := j.requireSpan(r.From); err != nil {
		return err
	}
	if err := j.requireSpan(r.To); err != nil {
		return err
	}
	j.summaries.add(r.Context, len(j.effects.Summaries))
	j.effects.Summaries = append(j.effects.Summaries, Noted[*structure.Summary]{i, r})
	return nil
}

func (k *keys) summary(r *structure.Summary) {
	k.context(r.Context)
	k.add(Key{Kind: KeyBlock, Hash: r.Content})
	k.span(r.From)
	k.span(r.To)
}

func (j *judging) reflogEntry(i int, r *structure.Reflog) error {
	if err := j.requireContext(r.Context); err != nil {
		return err
	}
	if err := j.requireSpan(r.From); err != nil {
		return err
	}
	if err := j.requireSpan(r.To); err != nil {
		return err
	}
	j.reflog.add(r.Context, len(j.effects.Reflog))
	j.effects.Reflog = append(j.effects.Reflog, Noted[*structure.Reflog]{i, r})
	return nil
}

func (k *keys) reflogEntry(r *structure.Reflog) {
	k.context(r.Context)
	k.span(r.From)
	k.span(r.To)
}

// deleteSummary deletes the oldest summary with the id.
func (j *judging) deleteSummary(d *structure.Deletion) error {
	if change, _ := j.effects.Contexts.Get(d.Context); !change.Gone() {
		stored, err := j.View.Summaries(d.Context)
		if err != nil {
			return err
		}
		for _, s := range stored {
			if _, gone := j.effects.SummariesGone.Get(s); !gone && s.ID == d.Summary {
				j.effects.SummariesGone.set(s, struct{}{})
				return nil
			}
		}
	}
	for _, i := range j.summaries.get(d.Context) {
		if s := &j.effects.Summaries[i]; s.Is != nil && s.Is.ID == d.Summary {
			s.Is = nil
			return nil
		}
	}
	if j.Replay {
		return nil
	}
	return refusal("summary", d.Summary, backend.ErrNotFound, "")
}

func (k *keys) deleteSummary(d *structure.Deletion) {
	k.add(Key{Kind: KeySummaries, ID: d.Context})
}
