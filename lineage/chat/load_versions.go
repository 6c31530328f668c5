package chat

import (
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

// follower is a span that may have to follow a later version of what it follows.
type follower struct{ at, after structure.SpanRef }

// renew adds the new versions, and again the messages that follow earlier ones.
func (s *loading) renew(ctx context.Context, c *change) (*renewal, error) {
	r := &renewal{
		filling: &filling{loading: s, beside: make(map[string]*message)}, stage: c,
		to: make(map[structure.SpanRef]structure.SpanRef), fresh: make(map[string]structure.SpanRef),
	}
	reach, err := backend.OwnReach(ctx, c.committed().from, c.t.ID)
	if err != nil {
		return nil, err
	}
	r.spans = reach.Spans()
	if len(s.versions) == 0 && s.placed(reach) == r.spans {
		return r, nil // the thread has only what the chat has, each message once
	}
	followers, err := r.followers(ctx, reach)
	if err == nil && len(s.versions) > 0 {
		err = c.keep(ctx)
	}
	if err == nil {
		err = r.add(ctx, followers)
	}
	return r, err
}

// placed returns how many spans of a reach the messages of the chat have.
func (s *loading) placed(reach backend.Reach) uint64 {
	spans := make(map[structure.SpanRef]bool)
	for _, is := range s.listed {
		if reach.Has(is.at) {
			spans[is.at] = true
		}
	}
	return uint64(len(spans))
}

// end notes what the commit of a renewal added, and reports whether it was all: others may have added messages after
// earlier versions meanwhile.
func (r *renewal) end(ctx context.Context) (bool, error) {
	s := r.loading
	s.problems = append(s.problems, r.problems...)
	s.done.New += r.added
	for id, at := range r.fresh {
		s.listed[id] = standing{at: at}
	}
	s.versions = nil
	if r.added+r.again == 0 {
		return true, nil
	}
	reach, err := backend.OwnReach(ctx, s.state.from, s.home.Thread)
	return r.again == 0 && reach.Spans() == r.spans+uint64(r.added), err
}

// followers returns the spans of the thread that are no earlier versions, each after those that it follows, and notes the
// earlier versions.
func (r *renewal) followers(ctx context.Context, reach backend.Reach) ([]follower, error) {
	var all []follower
	from := r.stage.committed().from
	for _, e := range reach.Extents() {
		is := follower{after: e.Run.Parent}
		for step, err := range from.Path(ctx, structure.SpanRef{Run: e.Run.ID, Seq: e.Last}, structure.Window{From: e.Run.Position(1)}, backend.PathOptions{}) {
			if err != nil {
				return nil, err
			}
			is.at = step.Span.Ref
			id, _ := sourceOf(step.Span.Usages)
			listed := r.listed[id]
			if id != "" && listed.at != is.at {
				latest, err := backend.FindFirst(ctx, from, id, r.stage.t.ID)
				if err != nil {
					return nil, err
				}
				if latest.Span != is.at {
					r.to[is.at] = latest.Span
				} else if !listed.at.IsZero() { // another loading has brought a new version
					r.to[listed.at] = is.at
				}
			}
			if !listed.waits {
				all = append(all, is)
			}
			is.after = is.at
		}
	}
	return all, nil
}

// add adds the new versions to the transaction, and followers again.
func (r *renewal) add(ctx context.Context, followers []follower) error {
	for _, v := range r.loading.versions {
		if v.message != nil {
			r.beside[v.id] = v.message
		}
	}
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
	for {
		first := slices.IndexFunc(followers, r.isBehind)
		if first < 0 {
			return nil
		}
		part := followers[first:min(first+pageMessages, len(followers))]
		followers = followers[first+len(part):]
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
}

// isBehind reports whether a follower follows an earlier version, and is none itself.
func (r *renewal) isBehind(f follower) bool {
	_, earlier := r.to[f.at]
	return !earlier && r.now(f.after) != f.after
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

// follower adds a follower again, if it is behind.
func (r *renewal) follower(ctx context.Context, is follower) error {
	if !r.isBehind(is) {
		return nil
	}
	m, err := r.stored(ctx, is.at)
	if err != nil {
		return err
	}
	after := r.now(is.after)
	found, err := r.find(after, m)
	if err == nil && !found.How.Has() {
		found.Span, err = r.placer.Add(after, &m.content, found)
		r.again++
	}
	r.to[is.at] = found.Span
	return err
}

// stored returns a message as the store has it.
func (r *renewal) stored(ctx context.Context, at structure.SpanRef) (*message, error) {
	step, err := r.c.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return nil, err
	}
	id, _ := sourceOf(step.Span.Usages)
	return &message{content: place.Message{ID: id, Usages: step.Span.Usages}, said: true}, nil
}

// version adds a new version, unless the store has it.
func (r *renewal) version(ctx context.Context, v *version) error {
	parent, err := r.position(ctx, v.parent)
	if isMissing(err) {
		return nil // it was deleted since
	}
	m := v.message
	if err == nil && m == nil {
		m, err = r.stored(ctx, v.was)
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
				r.problems = append(r.problems, &Error{Subject: SubjectMessage, ID: v.id, ChatID: r.from.Chat.ID, Err: ErrInvalid, Detail: "it would follow itself"})
				return err
			}
		}
	}
	switch {
	case found.How == place.Absent:
		err = r.derive(ctx, m)
	case !m.said: // it is derived from the version before
		var was content.ID
		was, err = r.c.contentAt(ctx, found.Span)
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
