package chat

import (
	"context"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A message cannot be changed. If another program has changed one in its database, a loading adds it again as a new
// version, and also every message that follows it, all in one commit. So a message that can be found by its id never
// follows an earlier version. The exception is a message that was itself added after an earlier version; the next
// loading adds it again.

// renewal adds new versions, and again the messages that follow earlier versions. It is the last transaction of a loading.
type renewal struct {
	*placing
	stage    *openChat // the changes of the transaction
	spans    uint64    // number of spans of the thread before
	repeated int       // number of messages added again
}

// follower is a span that may have to follow a later version of its parent.
type follower struct{ at, after structure.SpanRef }

// renew adds the new versions of messages. It also adds the messages again that follow earlier versions.
func (s *loading) renew(ctx context.Context, c *openChat) (*renewal, error) {
	r := &renewal{stage: c, placing: &placing{
		loading: s, final: true, renewed: make(map[structure.SpanRef]structure.SpanRef),
		inCommit: make(map[string]*message), placed: make(map[string]standing),
	}}
	reach, err := backend.OwnReach(ctx, c.committed().from, c.t.ID)
	if err != nil {
		return nil, err
	}
	r.spans = reach.Spans()
	if len(s.versions) == 0 && s.spansIn(reach) == r.spans {
		return r, nil // the thread has only the messages of the chat, each once
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

// spansIn returns the number of spans of a reach that are messages of the chat.
func (s *loading) spansIn(reach backend.Reach) uint64 {
	spans := make(map[structure.SpanRef]bool)
	for _, m := range s.listed {
		if reach.Has(m.at) {
			spans[m.at] = true
		}
	}
	return uint64(len(spans))
}

// end records what the commit of a renewal added. It reports whether that was all: others may have added messages
// after earlier versions in the meantime.
func (r *renewal) end(ctx context.Context) (bool, error) {
	s := r.loading
	s.problems = append(s.problems, r.problems...)
	s.done.New += r.added
	maps.Copy(s.listed, r.placed)
	s.versions = nil
	if r.added+r.repeated == 0 {
		return true, nil
	}
	reach, err := backend.OwnReach(ctx, s.state.from, s.home.Thread)
	return r.repeated == 0 && reach.Spans() == r.spans+uint64(r.added), err
}

// followers returns the spans of the thread that are not earlier versions, each after its parent. It also records the
// earlier versions.
func (r *renewal) followers(ctx context.Context, reach backend.Reach) ([]follower, error) {
	var all []follower
	from := r.stage.committed().from
	for _, e := range reach.Extents() {
		f := follower{after: e.Run.Parent}
		for step, err := range from.Path(ctx, structure.SpanRef{Run: e.Run.ID, Seq: e.Last}, structure.Window{From: e.Run.Position(1)}, backend.PathOptions{}) {
			if err != nil {
				return nil, err
			}
			f.at = step.Span.Ref
			id, _ := sourceOf(step.Span.Usages)
			listed := r.listed[id]
			if id != "" && listed.at != f.at {
				latest, err := backend.FindFirst(ctx, from, id, r.stage.t.ID)
				if err != nil {
					return nil, err
				}
				if latest.Span != f.at {
					r.renewed[f.at] = latest.Span
				} else if !listed.at.IsZero() { // another loading has added a new version
					r.renewed[listed.at] = f.at
				}
			}
			if !listed.waits {
				all = append(all, f)
			}
			f.after = f.at
		}
	}
	return all, nil
}

// add adds the new versions to the transaction, and then the followers that must be added again.
func (r *renewal) add(ctx context.Context, followers []follower) error {
	for _, v := range r.loading.versions {
		if v.message != nil {
			r.inCommit[v.id] = v.message
		}
	}
	for part := range slices.Chunk(r.loading.versions, pageMessages) {
		err := r.inStage(ctx, func() error {
			for _, v := range part {
				if err := r.version(ctx, v); err != nil {
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
		err := r.inStage(ctx, func() error {
			for _, f := range part {
				if err := r.follower(ctx, f); err != nil {
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

// isBehind reports whether a follower follows an earlier version and is not an earlier version itself.
func (r *renewal) isBehind(f follower) bool {
	_, earlier := r.renewed[f.at]
	return !earlier && r.latestVersion(f.after) != f.after
}

// inStage runs a part of the transaction.
func (r *renewal) inStage(ctx context.Context, fill func() error) error {
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

// version adds a new version, unless the store has it.
func (r *renewal) version(ctx context.Context, v version) (err error) {
	m := v.message
	if m == nil {
		if m, err = r.stored(ctx, v.was); err != nil {
			return err
		}
		m.ParentID = v.parent
	}
	placed, err := r.place(ctx, m)
	r.placed[v.id] = placed
	if !v.was.IsZero() && !placed.at.IsZero() && v.was != placed.at {
		r.renewed[v.was] = placed.at // also if another loading has added the version
	}
	return err
}

// follower adds a follower again if it is behind.
func (r *renewal) follower(ctx context.Context, f follower) error {
	if !r.isBehind(f) {
		return nil
	}
	m, err := r.stored(ctx, f.at)
	if err != nil {
		return err
	}
	after := r.latestVersion(f.after)
	found, err := r.find(after, m)
	if err == nil && !found.How.Has() {
		found.Span, err = r.placer.Add(after, &m.content, found)
		r.repeated++
	}
	r.renewed[f.at] = found.Span
	return err
}

// stored returns a message as the store has it.
func (r *renewal) stored(ctx context.Context, at structure.SpanRef) (*message, error) {
	step, err := r.c.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return nil, err
	}
	id, _ := sourceOf(step.Span.Usages)
	return &message{Message: Message{ID: id, ChatID: r.from.Chat.ID}, content: place.Message{ID: id, Usages: step.Span.Usages}, hasOriginal: true, originalAsked: true}, nil
}
