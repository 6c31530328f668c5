package chat

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A message cannot be changed. Where another program changed one in its database, a
// loading adds it once more, as a new version, and again every message that follows it,
// all in one commit. So a message whose id leads to it follows no earlier version, but for
// one that was added after an earlier version itself: the next loading adds that again.

// link is a span of the chat's thread.
type link struct {
	ref, after structure.SpanRef
	id         string // empty where it was added without one
	looks      looks
}

// looks is what tells a span without an id from others after the same one.
type looks struct {
	after structure.SpanRef
	usage string
}

// history is what was said in a thread.
type history struct {
	all    []link // each after those that it follows
	at     map[structure.SpanRef]*link
	latest map[string]structure.SpanRef
	twins  map[looks]structure.SpanRef
	moved  map[structure.SpanRef]structure.SpanRef // of those without an id
}

// readHistory reads the spans of a thread in a state.
func readHistory(ctx context.Context, from backend.Reader, t *structure.Thread) (*history, error) {
	reach, err := backend.OwnReach(ctx, from, t.ID)
	if err != nil {
		return nil, err
	}
	h := &history{
		at: make(map[structure.SpanRef]*link), latest: make(map[string]structure.SpanRef),
		twins: make(map[looks]structure.SpanRef), moved: make(map[structure.SpanRef]structure.SpanRef),
	}
	versions := make(map[string]uint64)
	for _, e := range reach.Extents() {
		after, last := e.Run.Parent, structure.SpanRef{Run: e.Run.ID, Seq: e.Last}
		for step, err := range from.Path(ctx, last, structure.Window{From: e.Run.Position(1)}, backend.PathOptions{}) {
			if err != nil {
				return nil, err
			}
			is := link{ref: step.Span.Ref, after: after}
			if u := sourced(step.Span.Usages); u != nil {
				if is.id = u.SourceID; u.Lookup > versions[is.id] {
					versions[is.id], h.latest[is.id] = u.Lookup, is.ref
				}
			} else {
				is.looks = looks{after, fmt.Sprint(step.Span.Usages[0].CreatedAt.UnixMilli(), looksOf(step.Span.Usages))}
				h.twins[is.looks] = is.ref
			}
			h.all, after = append(h.all, is), is.ref
		}
	}
	for i := range h.all {
		h.at[h.all[i].ref] = &h.all[i]
	}
	return h, nil
}

// looksOf returns what the usages of a span say, and how, in few bytes.
func looksOf(usages []structure.Usage) content.ID {
	var b []byte
	for i := range usages {
		u := &usages[i]
		b = fmt.Appendf(b, "%v %q %q %q %v %q %v %v %v %q\n",
			u.Kind, u.Role, u.Name, u.Document, u.Revision, u.Filename, u.Content, u.Form, u.Opaque, u.Extras)
	}
	return content.Sum(b)
}

// now returns where the message at a span is now: its latest version.
func (h *history) now(at structure.SpanRef) structure.SpanRef {
	is := h.at[at]
	if is == nil {
		return at
	}
	if is.id != "" {
		return h.latest[is.id]
	}
	if moved, ok := h.moved[at]; ok {
		return moved
	}
	return at
}

// isBehind reports whether a message follows another one, where each stands now.
func (h *history) isBehind(at structure.SpanRef, id string) bool {
	for range len(h.at) + 1 {
		is := h.at[at]
		if is == nil || is.id == id {
			return is != nil
		}
		at = h.now(is.after)
	}
	return true
}

// add notes what was added.
func (h *history) add(is, after structure.SpanRef, id string) {
	h.at[is] = &link{ref: is, after: after, id: id}
	if id != "" {
		h.latest[id] = is
	}
}

// renew adds the new versions, and again the messages of the store that follow earlier ones.
// It returns the history with them, and whether there were any.
func (s *loading) renew(ctx context.Context, in *state, t *structure.Thread) (*history, bool, error) {
	h, err := readHistory(ctx, in.committed().from, t)
	if err != nil {
		return nil, false, err
	}
	thread, err := in.store.Thread(ctx, s.thread)
	if err != nil {
		return nil, false, err
	}
	s.circular = nil
	any, fresh := false, make(map[string]bool)
	for i := range s.versions {
		added, err := s.renewVersion(ctx, in, t, thread, h, &s.versions[i])
		if err != nil {
			return nil, false, err
		}
		any, fresh[s.versions[i].ID] = any || added, true
	}
	for i := range h.all {
		is := &h.all[i]
		after := h.now(is.after)
		if after == is.after || is.id != "" && (h.latest[is.id] != is.ref || fresh[is.id]) {
			continue
		}
		if is.id == "" {
			if twin, ok := h.twins[looks{after, is.looks.usage}]; ok {
				h.moved[is.ref] = twin
				continue
			}
		}
		again, err := s.sayAgain(ctx, thread, after, is.ref)
		if err != nil {
			return nil, false, err
		}
		h.add(again, after, is.id)
		if any = true; is.id == "" {
			h.moved[is.ref], h.twins[looks{after, is.looks.usage}] = again, again
		}
	}
	return h, any, nil
}

// renewVersion adds a new version, unless it is there.
func (s *loading) renewVersion(ctx context.Context, in *state, t *structure.Thread, thread *lineage.Thread, h *history, v *version) (added bool, err error) {
	parent := structure.SpanRef{}
	if v.ParentID != "" {
		p, ok, err := in.find(ctx, string(v.ParentID), s.thread)
		if err != nil || !ok || p.thread != s.thread {
			return false, err // it was deleted since
		}
		parent = h.now(p.ref)
	}
	was, known := h.latest[v.ID]
	if known {
		switch after := h.at[was].after; {
		case after == parent:
			same := v.same
			if !same {
				same, err = s.same(ctx, in, was, &v.Message)
			}
			if same || err != nil {
				return false, err // another loading has brought it
			}
		case h.now(after) != parent && h.isBehind(parent, v.ID):
			s.circular = append(s.circular, &Error{Subject: SubjectMessage, ID: v.ID, ChatID: v.ChatID, Err: ErrInvalid, Detail: "it would follow itself"})
			return false, nil
		}
	}
	var is structure.SpanRef
	if v.same {
		is, err = s.sayAgain(ctx, thread, parent, was)
	} else if said, failed := s.said(ctx, []Message{v.Message}); failed != nil {
		err = failed
	} else {
		is, err = s.hang(ctx, in, t, parent, &v.Message, said[0], was)
	}
	if err != nil {
		return false, err
	}
	h.add(is, parent, v.ID)
	return true, nil
}

// sayAgain adds a message again after another span.
func (s *loading) sayAgain(ctx context.Context, thread *lineage.Thread, after, was structure.SpanRef) (is structure.SpanRef, err error) {
	entries, err := s.store.Span(ctx, was)
	if err != nil {
		return is, err
	}
	items := make([]lineage.Item, len(entries))
	for i, e := range entries {
		items[i] = e.Item().WithID(e.SourceID)
	}
	spans, err := thread.Hang(ctx, after, lineage.Together(items...)...)
	if err != nil {
		return is, err
	}
	return spans[0], nil
}
