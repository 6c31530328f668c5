package chat

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A message cannot be changed. Where another program changed one in its database, a
// loading adds it once more, as a new version, and again every message that follows it,
// all in one commit. So a message whose id leads to it follows no earlier version, but for
// one that was added after an earlier version itself: the next loading adds that again.

// renewal adds the new versions in one state of the store, and again what follows earlier ones.
type renewal struct {
	*filling
	stage *change // what the transaction has changed
	spans uint64  // of the thread before
	// to has for earlier versions a later one.
	to    map[structure.SpanRef]structure.SpanRef
	fresh map[string]structure.SpanRef // the new versions, by their ids
	again int                          // how many followers were added
}

// follower is a span that does not come with the chat.
type follower struct{ at, after structure.SpanRef }

// renew adds the new versions, and again the messages of the store that follow earlier ones.
func (s *loading) renew(ctx context.Context, c *change) (*renewal, error) {
	r := &renewal{
		filling: &filling{loading: s, in: c.committed()}, stage: c,
		to: make(map[structure.SpanRef]structure.SpanRef), fresh: make(map[string]structure.SpanRef),
	}
	reach, err := backend.OwnReach(ctx, r.in.from, c.t.ID)
	if err != nil {
		return nil, err
	}
	r.spans = reach.Spans()
	followers, err := r.followers(ctx, reach)
	if err != nil || len(s.versions) == 0 && len(followers) == 0 {
		return r, err
	}
	if err := c.keep(ctx); err != nil {
		return nil, err
	}
	return r, r.add(ctx, followers)
}

// end notes what the commit of a renewal added, and reports whether it was all: others may have added messages after
// earlier versions meanwhile.
func (r *renewal) end(ctx context.Context) (bool, error) {
	s := r.loading
	s.problems, r.problems = append(s.problems, r.problems...), nil
	s.done.New += r.added
	for id, at := range r.fresh {
		s.listed[id] = standing{at: at}
	}
	s.versions = nil
	if r.added+r.again == 0 {
		return true, nil
	}
	reach, err := backend.OwnReach(ctx, s.state.from, s.home.Thread)
	return !s.disordered && reach.Spans() == r.spans+uint64(r.added+r.again), err
}

// followers returns the spans of the thread that may follow earlier versions, each after those that it follows: what the
// chat does not list. It reads only these, and notes which of them are earlier versions.
func (r *renewal) followers(ctx context.Context, reach backend.Reach) ([]follower, error) {
	for {
		disordered := r.loading.disordered
		listed := r.listedSpans(reach)
		if uint64(len(listed)) == reach.Spans() {
			return nil, nil
		}
		var all []follower
		for _, e := range reach.Extents() {
			for from := uint64(1); from <= e.Last; {
				i, is := slices.BinarySearchFunc(listed, structure.SpanRef{Run: e.Run.ID, Seq: from}, compareSpans)
				if is {
					from++
					continue
				}
				last := e.Last
				if i < len(listed) && listed[i].Run == e.Run.ID {
					last = listed[i].Seq - 1
				}
				var err error
				if all, err = r.follow(ctx, all, e.Run, from, last); err != nil {
					return nil, err
				}
				from = last + 1
			}
		}
		if disordered == r.loading.disordered {
			return all, nil
		}
	}
}

// listedSpans returns the spans of the thread that need not be read, in order.
func (r *renewal) listedSpans(reach backend.Reach) []structure.SpanRef {
	if r.loading.disordered {
		return nil
	}
	spans := make([]structure.SpanRef, 0, len(r.listed))
	for _, is := range r.listed {
		if reach.Has(is.at) {
			spans = append(spans, is.at)
		}
	}
	for _, v := range r.loading.versions {
		if reach.Has(v.was) {
			spans = append(spans, v.was)
		}
	}
	slices.SortFunc(spans, compareSpans)
	return slices.Compact(spans)
}

func compareSpans(a, b structure.SpanRef) int {
	if a.Run != b.Run {
		return a.Run.Compare(b.Run)
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// follow appends the followers among some spans of a run.
func (r *renewal) follow(ctx context.Context, all []follower, run structure.RunInfo, from, last uint64) ([]follower, error) {
	after := run.Parent
	if from > 1 {
		after = structure.SpanRef{Run: run.ID, Seq: from - 1}
	}
	for step, err := range r.in.from.Path(ctx, structure.SpanRef{Run: run.ID, Seq: last}, structure.Window{From: run.Position(from)}, backend.PathOptions{}) {
		if err != nil {
			return nil, err
		}
		is := follower{step.Span.Ref, after}
		after = is.at
		id, _ := sourceOf(step.Span.Usages)
		if id == "" {
			all = append(all, is)
			continue
		}
		latest, err := backend.FindFirst(ctx, r.in.from, id, r.stage.t.ID)
		if err != nil {
			return nil, err
		}
		listed, known := r.listed[id]
		switch {
		case latest.Span != is.at:
			r.to[is.at] = latest.Span
		case known && listed.waits:
		default:
			if known && !listed.at.IsZero() && listed.at != is.at { // another loading has brought a new version
				r.to[listed.at], r.loading.disordered = is.at, true
			}
			all = append(all, is)
		}
	}
	return all, nil
}

// add adds the new versions to the transaction, and followers again.
func (r *renewal) add(ctx context.Context, followers []follower) error {
	for part := range slices.Chunk(r.loading.versions, pageMessages) {
		err := r.stages(ctx, func() error {
			for i := range part {
				if err := r.version(ctx, &part[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for part := range slices.Chunk(followers, pageMessages) {
		err := r.stages(ctx, func() error {
			for _, is := range part {
				if err := r.follower(ctx, is); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stages makes a part of the transaction.
func (r *renewal) stages(ctx context.Context, fill func() error) error {
	stage := r.stage.stage()
	_, err := write.Of(r.stage.store).Make(ctx, func(b *write.Batch, try write.Try) error {
		if try.Err != nil {
			return try.Err // the state of a transaction does not change
		}
		if err := r.read(ctx, staged{stage}, b, stage.IsFresh()); err != nil {
			return err
		}
		return fill()
	})
	return err
}

// staged is the state inside a transaction. Its lists are those of the state before: the placer finds the runs that it
// began without them.
type staged struct{ *write.Stage }

func (s staged) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return s.Reader.RunsOf(ctx, thread, after)
}

func (s staged) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return s.Reader.ForksAt(ctx, at)
}

// follower adds a follower again, unless what it follows is where it was.
func (r *renewal) follower(ctx context.Context, is follower) error {
	after := r.now(is.after)
	if _, earlier := r.to[is.at]; earlier || after == is.after {
		return nil
	}
	m, err := r.stored(ctx, is.at)
	if err != nil {
		return err
	}
	found, err := r.placer.Place(after, &m)
	if err != nil {
		return err
	}
	if !found.How.Has() {
		r.again++
	}
	r.to[is.at] = found.Span
	return nil
}

// stored returns a message as the store has it.
func (r *renewal) stored(ctx context.Context, at structure.SpanRef) (place.Message, error) {
	step, err := r.in.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return place.Message{}, err
	}
	id, _ := sourceOf(step.Span.Usages)
	return place.Message{ID: id, Usages: step.Span.Usages}, nil
}

// version adds a new version, unless the store has it.
func (r *renewal) version(ctx context.Context, v *version) error {
	parent, err := r.position(ctx, v.parent)
	if isMissing(err) {
		return nil // it was deleted since
	}
	m := v.message
	if err == nil && m == nil {
		m = &message{Message: Message{ID: v.id, ChatID: r.from.Chat.ID, ParentID: v.parent}, said: true}
		m.content, err = r.stored(ctx, v.was)
	}
	if err != nil {
		return err
	}
	found, err := r.find(parent, m)
	if err != nil {
		return err
	}
	if !v.was.IsZero() && v.was != found.Span { // another loading has brought a new version
		r.to[v.was] = found.Span
	}
	if found.How.Has() {
		r.fresh[v.id] = found.Span
		return nil
	}
	if found.How != place.Absent {
		after, err := r.placer.Before(found.Span)
		if err != nil {
			return err
		}
		if r.now(after) != parent {
			if follows, err := r.follows(parent, found.Span); follows || err != nil {
				r.problems = append(r.problems, &Error{Subject: SubjectMessage, ID: v.id, ChatID: m.ChatID, Err: ErrInvalid, Detail: "it would follow itself"})
				return err
			}
		}
	}
	switch {
	case found.How == place.Absent:
		err = r.derive(ctx, m)
	case !m.said: // it is derived from the version before
		var was content.ID
		was, err = r.in.contentAt(ctx, found.Span)
		m.derive(was)
	}
	if err != nil {
		return err
	}
	at, err := r.placer.Add(parent, &m.content, found)
	if found.How != place.Absent {
		r.to[found.Span] = at
	}
	r.fresh[v.id] = at
	r.added++
	return err
}

// position returns where a message stands now that another one follows.
func (r *renewal) position(ctx context.Context, id Ref) (structure.SpanRef, error) {
	if at, ok := r.fresh[string(id)]; ok || id == "" {
		return at, nil
	}
	at := r.listed[string(id)].at
	if at.IsZero() {
		var err error
		if at, err = r.stage.position(ctx, id); err != nil {
			return at, err
		}
	}
	return r.now(at), nil
}

// now returns where the message at a span stands now: its latest version.
func (r *renewal) now(at structure.SpanRef) structure.SpanRef {
	for {
		to, earlier := r.to[at]
		if !earlier {
			return at
		}
		at = to
	}
}

// follows reports whether the message at a span follows that at another one, where each stands now, or is it.
func (r *renewal) follows(at, other structure.SpanRef) (bool, error) {
	for range r.spans + uint64(r.added) + 1 {
		if at == other || at.IsZero() {
			return at == other, nil
		}
		after, err := r.placer.Before(at)
		if err != nil {
			return false, err
		}
		at = r.now(after)
	}
	return true, nil
}
