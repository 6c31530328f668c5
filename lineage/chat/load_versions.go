package chat

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A message cannot be changed. Where another program changed one in its database, a
// loading adds it once more, as a new version, and again every message that follows it,
// all in one commit. So a message whose id leads to it follows no earlier version, but for
// one that was added after an earlier version itself: the next loading adds that again.

// link is a span of the chat's thread.
type link struct {
	looks
	ref structure.SpanRef
	id  string // empty where it was added without one
	// moved is the span that says the same after the latest version, of one without an id.
	moved structure.SpanRef
}

// looks is what a span follows and, where it was added without an id, what tells it from others after
// the same one.
type looks struct {
	after structure.SpanRef
	usage string
}

// history is what was said in a thread.
type history struct {
	all    []*link // each after those that it follows
	at     map[structure.SpanRef]*link
	latest map[string]structure.SpanRef
	twins  map[looks]structure.SpanRef // of those without an id
}

// readHistory reads the spans of a thread in a state.
func readHistory(ctx context.Context, from backend.Reader, thread structure.ThreadID) (*history, error) {
	reach, err := backend.OwnReach(ctx, from, thread)
	if err != nil {
		return nil, err
	}
	h := &history{
		at: make(map[structure.SpanRef]*link), latest: make(map[string]structure.SpanRef), twins: make(map[looks]structure.SpanRef),
	}
	versions := make(map[string]uint64)
	for _, e := range reach.Extents() {
		after, last := e.Run.Parent, structure.SpanRef{Run: e.Run.ID, Seq: e.Last}
		for step, err := range from.Path(ctx, last, structure.Window{From: e.Run.Position(1)}, backend.PathOptions{}) {
			if err != nil {
				return nil, err
			}
			id, version := sourceOf(step.Span.Usages)
			is := &link{ref: step.Span.Ref, looks: looks{after: after}, id: id}
			if version > versions[id] {
				versions[id], h.latest[id] = version, is.ref
			}
			if id == "" {
				is.usage = fmt.Sprint(step.Span.Usages[0].CreatedAt.UnixMilli(), looksOf(step.Span.Usages))
				h.twins[is.looks] = is.ref
			}
			h.all, h.at[is.ref], after = append(h.all, is), is, is.ref
		}
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
	switch {
	case is == nil:
		return at
	case is.id != "":
		return h.latest[is.id]
	}
	return cmp.Or(is.moved, at)
}

// follows reports whether the message at a span follows the one with an id, where each stands now, or is it.
func (h *history) follows(at structure.SpanRef, id string) bool {
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
	h.at[is] = &link{ref: is, looks: looks{after: after}, id: id}
	if id != "" {
		h.latest[id] = is
	}
}

// renew adds the new versions, and again the messages of the store that follow earlier ones.
// It returns the history with them, and whether there were any.
func (s *loading) renew(ctx context.Context, c *change) (*history, bool, error) {
	h, err := readHistory(ctx, c.committed().from, c.t.ID)
	if err != nil {
		return nil, false, err
	}
	any, fresh := false, make(map[string]bool)
	for i := range s.versions {
		added, err := s.renewVersion(ctx, c, h, &s.versions[i])
		if err != nil {
			return nil, false, err
		}
		any, fresh[s.versions[i].ID] = any || added, true
	}
	for _, is := range h.all {
		to := looks{h.now(is.after), is.usage}
		if to.after == is.after || is.id != "" && (h.latest[is.id] != is.ref || fresh[is.id]) {
			continue
		}
		again, known := h.twins[to]
		if !known {
			if again, err = c.addAgain(ctx, to.after, is.ref); err != nil {
				return nil, false, err
			}
			h.add(again, to.after, is.id)
			any = true
		}
		if is.id == "" {
			is.moved, h.twins[to] = again, again
		}
	}
	return h, any, nil
}

// renewVersion adds a new version, unless it is there.
func (s *loading) renewVersion(ctx context.Context, c *change, h *history, m *Message) (added bool, err error) {
	parent, err := c.position(ctx, m.ParentID)
	if isMissing(err) {
		return false, nil // it was deleted since
	}
	if err != nil {
		return false, err
	}
	parent = h.now(parent)
	same := m.Data == nil
	was, known := h.latest[m.ID]
	if known {
		switch after := h.at[was].after; {
		case after == parent:
			there := same
			if !there {
				there, err = s.same(ctx, c.state, was, m)
			}
			if there || err != nil {
				return false, err // another loading has brought it
			}
		case h.now(after) != parent && h.follows(parent, m.ID):
			s.problems = append(s.problems, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrInvalid, Detail: "it would follow itself"})
			return false, nil
		}
	}
	var is structure.SpanRef
	if same {
		is, err = c.addAgain(ctx, parent, was)
	} else if said, failed := s.from.Said(ctx, []Message{*m}); failed != nil {
		err = failed
	} else {
		is, err = s.hang(ctx, c, parent, m, said[0], was)
	}
	if err != nil {
		return false, err
	}
	h.add(is, parent, m.ID)
	return true, nil
}

// addAgain adds a message again after another span.
func (c *change) addAgain(ctx context.Context, after, was structure.SpanRef) (structure.SpanRef, error) {
	step, err := c.step(ctx, was, backend.PathOptions{})
	if err != nil {
		return structure.SpanRef{}, err
	}
	return c.extend(ctx, after, nil, step.Span.Usages)
}
