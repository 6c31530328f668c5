package judge

import (
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// An extend of a history is refused for two reasons: the context has another tip than the caller expected, or a new span does
// not fit.

// expectTip compares the tip of a context with the expected one.
func expectTip(v View, expect backend.Expect) error {
	c, err := v.Context(expect.Context)
	if err := required(c != nil, err, "context", expect.Context); err != nil {
		return err
	}
	if c.Tip != expect.Tip {
		return &backend.TipError{Context: expect.Context, Expected: expect.Tip, Actual: c.Tip}
	}
	return nil
}

// extend accepts the i-th record of the commit, a span that extends a run, or refuses it: it must follow the last span of
// its run, and everything that it names must exist.
func (j *judging) extend(i int, s *structure.Span) error {
	end, err := j.endBefore(s.Ref)
	if err != nil {
		return err
	}
	if s.Ref.Seq != end.Seq+1 {
		return refusal("span", s.Ref, backend.ErrConflict, fmt.Sprintf("the run ends at %d", end.Seq))
	}
	if !s.Set.IsZero() {
		if err := j.requireSet(s.Set); err != nil {
			return err
		}
	}
	run, _, err := j.runInfo(s.Ref.Run)
	if err != nil {
		return err
	}
	if err := j.usages(s, run.Home); err != nil {
		return err
	}
	digest := structure.NextDigest(end.Digest, s.Usages)
	j.effects.Spans.set(s.Ref, Span{Span: s, Record: i, Digest: digest})
	j.effects.Ends.set(s.Ref.Run, End{Seq: s.Ref.Seq, Digest: digest})
	j.effects.Counts.Spans++
	return nil
}

// endBefore returns the end of the run of a new span. In replay that is just before the
// span.
func (j *judging) endBefore(r structure.SpanRef) (end End, err error) {
	end, changed := j.effects.Ends.Get(r.Run)
	if changed && (end.Seq+1 == r.Seq || !j.Replay) {
		return end, nil
	}
	if j.Replay {
		end = End{Seq: r.Seq - 1}
		end.Digest, err = j.digestBefore(r)
		return end, err
	}
	end, there, err := j.View.End(r.Run)
	switch {
	case err != nil:
		return end, err
	case !there:
		return end, refusal("span", r, backend.ErrConflict, "there is no such run")
	case end.Closed:
		return end, refusal("span", r, backend.ErrConflict, "the end of the run was collected")
	}
	return end, nil
}

// digestBefore returns the digest of the history before a new span.
func (j *judging) digestBefore(r structure.SpanRef) (structure.Digest, error) {
	if r.Seq > 1 {
		return j.digest(structure.SpanRef{Run: r.Run, Seq: r.Seq - 1})
	}
	run, known, err := j.runInfo(r.Run)
	return run.Digest, required(known, err, "run", r.Run)
}

// newSpan adds the keys that extend reads.
func (k *keys) newSpan(s *structure.Span) {
	k.add(Key{Kind: KeyEnd, ID: s.Ref.Run})
	home, created := k.homes[s.Ref.Run]
	if !created {
		k.add(Key{Kind: KeyRun, ID: s.Ref.Run})
	}
	k.set(s.Set)
	for i := range s.Usages {
		u := &s.Usages[i]
		for _, id := range u.Named(nil) {
			k.add(Key{Kind: KeyBlock, Hash: *id})
		}
		if u.Lookup == 0 {
			continue
		}
		if created {
			k.add(Key{Kind: KeyLookups, ID: home.Thread, Seq: home.Incarnation, Name: u.SourceID})
		} else {
			k.add(Key{Kind: KeyLookupsOfRun, ID: s.Ref.Run, Name: u.SourceID})
		}
	}
	if k.replay && s.Ref.Seq > 1 {
		k.digest(structure.SpanRef{Run: s.Ref.Run, Seq: s.Ref.Seq - 1})
	}
}

// usedContent checks that the contents of a usage exist, except in a replay, and returns the size of the main one.
func (j *judging) usedContent(u *structure.Usage) (size int64, err error) {
	size, known, err := j.size(u.Content)
	if j.Replay {
		return size, err
	}
	if err := required(known, err, "block", u.Content); err != nil {
		return 0, err
	}
	for _, id := range [...]content.ID{u.Form, u.MetadataContent} {
		if id.IsZero() {
			continue
		}
		_, known, err := j.size(id)
		if err := required(known, err, "block", id); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// usages checks the usages of a new span, and counts them.
func (j *judging) usages(s *structure.Span, home structure.Home) error {
	if len(s.Usages) == 0 {
		return refusal("span", s.Ref, backend.ErrInvalid, "no usages")
	}
	parts := -1 // of the current message, or -1
	for i := range s.Usages {
		u := &s.Usages[i]
		if err := u.Check(); err != nil {
			return fmt.Errorf("span %v: %w: %w", s.Ref, backend.ErrInvalid, err)
		}
		switch {
		case u.Kind == structure.MessageUsage:
			parts = 0
		case u.Kind != structure.PartUsage:
			parts = -1
		case parts < 0 || parts == structure.MostParts:
			return refusal("span", s.Ref, backend.ErrInvalid, "a part without a message, or more parts than a message has")
		default:
			parts++
		}
		size, err := j.usedContent(u)
		if err != nil {
			return err
		}
		j.effects.Counts.LogicalBytes += size
		if err := backend.CheckSourceID(u.SourceID); err != nil {
			return err
		}
		if u.Lookup != 0 {
			if err := j.lookup(u, home, s.Ref); err != nil {
				return err
			}
		}
	}
	j.effects.Counts.Usages += int64(structure.Entries(s.Usages))
	j.lastMessage(s, home)
	return nil
}

// lastMessage records the time of a new span if its run belongs to a thread.
func (j *judging) lastMessage(s *structure.Span, home structure.Home) {
	if home.Thread.IsZero() {
		return
	}
	at := s.Usages[0].CreatedAt.UnixMilli()
	for i := range s.Usages[1:] {
		at = max(at, s.Usages[1+i].CreatedAt.UnixMilli())
	}
	if known, ok := j.effects.LastMessages.Get(home); !ok || known < at {
		j.effects.LastMessages.set(home, at)
	}
}

// lookup lets a span be found by the source id of a usage, if its run belongs to a thread.
func (j *judging) lookup(u *structure.Usage, home structure.Home, r structure.SpanRef) error {
	if home.Thread.IsZero() {
		return nil
	}
	l := Lookup{home, u.SourceID, u.Lookup}
	if !j.Replay {
		_, taken := j.effects.Lookups.Get(l)
		if !taken {
			var err error
			if taken, err = j.View.HasLookup(l); err != nil {
				return err
			}
		}
		if taken {
			return sourceRefusal(u.SourceID, backend.ErrExists, "in thread "+home.Thread.String())
		}
	}
	j.effects.Lookups.set(l, r)
	return nil
}
