package chat

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Histories that were not made here are chats too. A thread without a source id
// goes by its own, and a span that is no message of the chat's, such as one that
// an agent added through the library or that the chat shares with another, is a
// message under the name that foreignID gives it.

// chatID returns the id of the chat that a thread is.
func chatID(sourceID string, id structure.ThreadID) string {
	if sourceID != "" {
		return sourceID
	}
	return id.String()
}

// unnamedThread returns the thread without a source id that goes by its own, nil
// if there is none.
func (s *onStore) unnamedThread(ctx context.Context, id string) (*structure.Thread, error) {
	parsed, err := structure.ParseID[structure.ThreadID](id)
	if err != nil || parsed.String() != id {
		return nil, nil
	}
	r, err := s.engine.Thread(ctx, parsed)
	if isNotFound(err) || err == nil && r.SourceID != "" {
		return nil, nil
	}
	return r, err
}

// foreignID names a span as a message of a thread.
func foreignID(thread structure.ThreadID, at structure.SpanRef) string {
	return thread.String() + "/" + at.String()
}

// findForeign returns the place that foreignID named so, if it is in the chat.
func (s *onStore) findForeign(ctx context.Context, id string) (place, bool, error) {
	first, rest, _ := strings.Cut(id, "/")
	thread, err := structure.ParseID[structure.ThreadID](first)
	if err != nil {
		return place{}, false, nil
	}
	at, err := structure.ParseSpanRef(rest)
	if err != nil || at.IsZero() || foreignID(thread, at) != id {
		return place{}, false, nil
	}
	if is, err := s.sees(ctx, thread, at); err != nil || !is {
		return place{}, false, err
	}
	known, err := s.idAt(ctx, thread, at)
	return place{ref: at, thread: thread}, err == nil && known == Ref(id), err
}

// sees reports whether a span is of a chat. Only for one that the active branch does not
// have it looks at all contexts and checkpoints of the thread.
func (s *onStore) sees(ctx context.Context, thread structure.ThreadID, at structure.SpanRef) (bool, error) {
	t, err := s.engine.Thread(ctx, thread)
	if err == nil {
		var active backend.Context
		if active, err = s.engine.Context(ctx, t.Active); err == nil {
			var is bool
			if is, err = structure.IsAncestor(at, active.Tip, s.runs(ctx)); is {
				return true, nil
			}
		}
	}
	if err != nil && !isNotFound(err) {
		return false, err
	}
	graph, err := s.reach(ctx, thread)
	if err != nil {
		return false, err
	}
	r := graph[at.Run]
	return r != nil && r.last >= at.Seq, nil
}

// foreignData returns what a span says as the JSON of a message: as it is, if that
// is what it holds, else as text and files.
func (r *reading) foreignData(ctx context.Context, step *backend.Step, id string) (json.RawMessage, error) {
	type part struct {
		Type      string `json:"type"`
		Text      string `json:"text,omitempty"`
		MediaType string `json:"mediaType,omitempty"`
		Filename  string `json:"filename,omitempty"`
		URL       string `json:"url,omitempty"`
	}
	parts := []part{}
	for i := range step.Span.Usages {
		u, b := &step.Span.Usages[i], step.Blocks[i]
		mediaType := u.Type
		if mediaType == "" {
			mediaType = b.Type
		}
		if u.Kind != structure.MessageUsage || mediaType != content.TypeText && mediaType != content.TypeJSON && mediaType != content.TypeMarkdown {
			name := u.Filename
			if u.Kind == structure.DocumentUsage {
				name = u.Document
			}
			parts = append(parts, part{Type: "file", MediaType: mediaType, Filename: name, URL: "lineage:content/" + u.Content.String()})
			continue
		}
		body, err := r.body(ctx, b)
		if err != nil {
			return nil, err
		}
		if mediaType == content.TypeJSON && len(step.Span.Usages) == 1 && json.Valid(body) {
			return body, nil
		}
		parts = append(parts, part{Type: "text", Text: string(body)})
	}
	return json.Marshal(struct {
		ID    string `json:"id"`
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}{id, roleOf(step), parts})
}

// roleOf returns the name of the message that a step is.
func roleOf(step *backend.Step) string {
	for i := range step.Span.Usages {
		if u := &step.Span.Usages[i]; u.Kind == structure.MessageUsage {
			return u.Role
		}
	}
	return step.Span.Usages[0].Kind.String()
}
