package chat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A message cannot be changed. Where another program changed one in its database, a
// loading adds it once more, as a new version, and again every message that follows
// it. The strands of the earlier versions then end before them, so that their ids
// lead to the new ones. A context that replacedID names keeps the earlier versions in
// the thread.

// replacedID is the context that keeps the messages of a run that were replaced. Its
// tip is the last of them.
func replacedID(run structure.RunID) structure.ContextID {
	return structure.DeriveID[structure.ContextID]("replaced", run.String())
}

// version is a message as the store has it, which a new version is to replace.
type version struct {
	// at is its span, zero if its strand ends before it already; after is the one
	// before it.
	at, after structure.SpanRef
	usage     structure.Usage
	// same is set when the new version has the same content.
	same bool
}

// version returns a message of the chat as the store has it.
func (s *loading) version(ctx context.Context, at structure.SpanRef, m *Message) (*version, error) {
	step, err := s.step(ctx, at)
	if err != nil {
		return nil, err
	}
	known, err := s.reading.message(ctx, step, m.ParentID)
	if err != nil {
		return nil, err
	}
	was := &version{at: at, usage: step.Span.Usages[0]}
	was.same = m.Same(known) || string(known.Data) == "null" // what was erased stays so
	was.after, err = s.before(ctx, at)
	return was, err
}

// step returns a span with its blocks.
func (s *loading) step(ctx context.Context, at structure.SpanRef) (*backend.Step, error) {
	var last *backend.Step
	for step, err := range s.engine.Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return nil, err
		}
		last = step
	}
	return last, nil
}

// before returns the span that another one follows.
func (s *loading) before(ctx context.Context, at structure.SpanRef) (structure.SpanRef, error) {
	if at.Seq > 1 {
		return structure.SpanRef{Run: at.Run, Seq: at.Seq - 1}, nil
	}
	run, err := s.engine.Run(ctx, at.Run)
	return run.Parent, err
}

// replacement is what ends strands before the messages that are replaced, and the tips
// that they must still have.
type replacement struct {
	records []structure.Record
	tips    []backend.Expect
}

// replacing ends the strands of the versions that the pending messages replace. All
// that follows them in their runs is replaced with them. The thread is stated anew, so
// that no other change is made for what it was.
func (s *loading) replacing(ctx context.Context, was *structure.Thread) (*replacement, error) {
	firsts := make(map[structure.RunID]uint64)
	for _, v := range s.replaces {
		if v == nil || v.at.IsZero() {
			continue
		}
		if first, ok := firsts[v.at.Run]; !ok || v.at.Seq < first {
			firsts[v.at.Run] = v.at.Seq
		}
	}
	r := &replacement{}
	for run, first := range firsts {
		in, err := s.strand(ctx, run)
		if err != nil {
			return nil, err
		}
		if in.thread != s.thread || !in.has(structure.SpanRef{Run: run, Seq: first}) {
			return nil, errAddedSince // another loading has replaced it
		}
		_, err = s.engine.Context(ctx, replacedID(run))
		if isNotFound(err) {
			r.records = append(r.records, &structure.Context{ID: replacedID(run), Thread: s.thread, Base: in.last, Tip: in.last})
		} else if err != nil {
			return nil, err
		}
		last := structure.SpanRef{}
		if first > 1 {
			last = structure.SpanRef{Run: run, Seq: first - 1}
		}
		r.records = append(r.records, &structure.Tip{Context: strandID(run), Span: last})
		r.tips = append(r.tips, backend.Expect{Context: strandID(run), Tip: in.last})
	}
	if len(firsts) > 0 {
		is := *was
		is.UpdatedAt = was.UpdatedAt.Add(time.Millisecond)
		if err := s.forgetGone(ctx, &is); err != nil {
			return nil, err
		}
		r.records = append(r.records, &is)
	}
	return r, nil
}

// isReplaced reports whether a span is an earlier version of a message.
func (s *loading) isReplaced(ctx context.Context, at structure.SpanRef) (bool, error) {
	if at.IsZero() {
		return false, nil
	}
	c, err := s.engine.Context(ctx, replacedID(at.Run))
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	in, err := s.strand(ctx, at.Run)
	return c.Thread == s.thread && !in.has(at) && at.Seq <= c.Tip.Seq, err
}

// latest returns the span of the version that counts of the message at a span.
func (s *loading) latest(ctx context.Context, at structure.SpanRef) (structure.SpanRef, error) {
	replaced, err := s.isReplaced(ctx, at)
	if err != nil || !replaced {
		return at, err
	}
	step, err := s.step(ctx, at)
	if err != nil {
		return at, err
	}
	if id := step.Span.Usages[0].SourceID; id != "" {
		if p, ok, err := s.find(ctx, id); err != nil || ok && p.thread == s.thread {
			return p.ref, err
		}
	}
	return at, nil
}

// newest returns the span of the newest version of a message that has been added here.
func (s *loading) newest(ctx context.Context, id string) (structure.SpanRef, error) {
	found, err := backend.FindFirst(ctx, s.engine, id, s.thread)
	if isNotFound(err) {
		err = nil
	}
	return found.Span, err
}

// stretch is a part of a run, both ends included.
type stretch struct {
	run         structure.RunInfo
	first, last uint64
}

// errOvertaken says that somebody else was faster with what addBehindReplaced adds.
var errOvertaken = errors.New("the chat was changed meanwhile")

// addBehindReplaced adds again the messages that the store has and the chat does not,
// where they follow a message that was replaced: they follow its new version.
func (s *loading) addBehindReplaced(ctx context.Context) error {
	s.behind = true
	for {
		stretches, err := s.behindReplaced(ctx)
		if err != nil {
			return err
		}
		added := false
		for _, part := range stretches {
			n, err := s.addStretch(ctx, part)
			if errors.Is(err, errOvertaken) {
				added = true
				break
			}
			if err != nil {
				return err
			}
			added = added || n > 0
		}
		if !added {
			return nil // each that waits for its parent has followed it
		}
	}
}

// behindReplaced returns where there may be messages that follow replaced ones, each
// stretch after those that it follows.
func (s *loading) behindReplaced(ctx context.Context) ([]stretch, error) {
	var contexts []backend.Context
	any := false
	for c, err := range s.engine.Contexts(ctx, s.thread, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if !c.Tip.IsZero() && (c.ID == replacedID(c.Tip.Run) || c.ID == strandID(c.Tip.Run)) {
			any = any || c.ID == replacedID(c.Tip.Run)
			contexts = append(contexts, c)
		}
	}
	if !any {
		return nil, nil
	}
	var found []stretch
	for _, c := range contexts {
		run, err := s.engine.Run(ctx, c.Tip.Run)
		if err != nil {
			return nil, err
		}
		part := stretch{run: run, first: 1, last: c.Tip.Seq}
		if c.ID == strandID(c.Tip.Run) {
			replaced, err := s.isReplaced(ctx, run.Parent)
			if err != nil {
				return nil, err
			}
			if !replaced {
				continue
			}
		} else {
			in, err := s.strand(ctx, c.Tip.Run)
			if err != nil {
				return nil, err
			}
			part.first = in.last.Seq + 1
		}
		found = append(found, part)
	}
	slices.SortFunc(found, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.run.Position(a.first), b.run.Position(b.first)), a.run.ID.Compare(b.run.ID))
	})
	return found, nil
}

// addStretch adds those messages of a stretch that were not added again yet, and
// returns how many there were.
func (s *loading) addStretch(ctx context.Context, part stretch) (added int, err error) {
	s.tip, s.last = structure.SpanRef{}, ""
	before, err := s.before(ctx, structure.SpanRef{Run: part.run.ID, Seq: part.first})
	if err != nil {
		return 0, err
	}
	parent := ""
	if !before.IsZero() {
		step, err := s.step(ctx, before)
		if err != nil {
			return 0, err
		}
		if parent, err = s.idOf(ctx, step); err != nil {
			return 0, err
		}
	}
	last := structure.SpanRef{Run: part.run.ID, Seq: part.last}
	for step, err := range s.engine.Path(ctx, last, structure.Window{From: part.run.Position(part.first)}, backend.PathOptions{}) {
		if err != nil {
			return added, err
		}
		at, id, follows := step.Span.Ref, step.Span.Usages[0].SourceID, parent
		if parent, err = s.idOf(ctx, step); err != nil {
			return added, err
		}
		if id == "" {
			continue
		}
		p, ok, err := s.find(ctx, id)
		if err != nil {
			return added, err
		}
		newest, err := s.newest(ctx, id)
		if err != nil {
			return added, err
		}
		if newest != at || ok && p.ref != at {
			continue // it was added again, or will be where it stood last
		}
		if follows != "" && follows != s.last {
			if _, there, err := s.find(ctx, follows); err != nil || !there {
				if err != nil {
					return added, err
				}
				continue // until its parent was added again
			}
		}
		was := &version{same: true, usage: step.Span.Usages[0]}
		if ok {
			was.at = at
		}
		m := Message{ID: id, ChatID: s.from.Chat.ID, ParentID: Ref(follows), Name: roleOf(step)}
		if can, err := s.follow(ctx, &m); err != nil {
			return added, err
		} else if can {
			s.append(m, was)
			added++
		}
	}
	return added, s.flush(ctx)
}

// idOf returns the id that a step was added under, or has as an earlier version.
func (s *loading) idOf(ctx context.Context, step *backend.Step) (string, error) {
	in, err := s.strand(ctx, step.Span.Ref.Run)
	if err != nil {
		return "", err
	}
	if id := step.Span.Usages[0].SourceID; id != "" && in.thread == s.thread {
		return id, nil
	}
	return foreignID(s.thread, step.Span.Ref), nil
}

// moveReplaced moves the branches and checkpoints that still lead to earlier versions.
func (s *loading) moveReplaced(ctx context.Context, t *structure.Thread, n *naming) error {
	stated := make(map[string]bool)
	moved := make(map[structure.ContextID]bool)
	for _, r := range n.records {
		switch r := r.(type) {
		case *structure.Tip:
			moved[r.Context] = true
		case *structure.Checkpoint:
			stated[r.Name] = true
		}
	}
	for b, err := range s.engine.Branches(ctx, t.ID, "", "") {
		if err != nil {
			return err
		}
		c, err := s.engine.Context(ctx, b.Context)
		if err != nil {
			return err
		}
		to, err := s.latest(ctx, c.Tip)
		if err != nil {
			return err
		}
		if to != c.Tip && !moved[c.ID] {
			n.move(&c, to, false, s.at)
		}
	}
	for k, err := range s.engine.Checkpoints(ctx, t.ID, "") {
		if err != nil {
			return err
		}
		to, err := s.latest(ctx, k.Span)
		if err != nil {
			return err
		}
		if to != k.Span && !stated[k.Name] {
			is := *k
			is.Span = to
			n.records = append(n.records, &is)
		}
	}
	return nil
}
