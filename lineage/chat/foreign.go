package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Any thread can be read as a chat, also one that was not written by this package. A thread without a source id has
// its thread id as chat id. A span that has no message id in the chat becomes a message with the id that foreignID
// returns. Such a span was added without a source id, belongs to another thread, or is an earlier version of a
// message.

// IDOfThread returns the chat id of a thread.
func IDOfThread(t *structure.Thread) string { return cmp.Or(t.SourceID, t.ID.String()) }

// foreignID returns the message id of a span that has no message id in the chat of a thread.
func foreignID(thread structure.ThreadID, at structure.SpanRef) string {
	return thread.String() + "/" + at.String()
}

// findForeign is find for an id that foreignID returned.
func (s *state) findForeign(ctx context.Context, id string) (backend.Found, bool, error) {
	first, rest, _ := strings.Cut(id, "/")
	thread, noThread := structure.ParseID[structure.ThreadID](first)
	at, noSpan := structure.ParseSpanRef(rest)
	if noThread != nil || noSpan != nil || at.IsZero() || foreignID(thread, at) != id {
		return backend.Found{}, false, nil
	}
	t, err := s.from.Thread(ctx, thread)
	if err != nil {
		return backend.Found{}, false, ignoreNotFound(err)
	}
	if is, err := s.committed().sees(ctx, t, at); err != nil || !is {
		return backend.Found{}, false, err
	}
	known, err := s.reading(t).IDAt(ctx, at)
	return backend.Found{Home: t.Home(), Span: at}, err == nil && known == Ref(id), err
}

// sees reports whether a span is in a chat. If the span neither belongs to the thread nor is on the active branch, it
// reads all contexts and checkpoints of the thread.
func (s *state) sees(ctx context.Context, t *structure.Thread, at structure.SpanRef) (bool, error) {
	run, err := s.from.Run(ctx, at.Run)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if t.Keeps && run.Home == t.Home() {
		last, err := s.from.Last(ctx, at.Run)
		return at.Seq <= last.Seq, err
	}
	active, err := s.from.Context(ctx, t.Active)
	if err != nil && !isNotFound(err) {
		return false, err
	}
	is, err := structure.IsAncestor(at, active.Tip, s.runs(ctx))
	if is || err != nil {
		return is, err
	}
	reach, err := backend.ReachOf(ctx, s.from, t)
	return reach.Has(at), err
}

// data returns the content of a span as the JSON of a message. If the span is one JSON message, it is returned as it
// was given. Otherwise the message has texts and files. A document becomes a file and, if it is text, also that text;
// both parts name the revision. Erased content is marked: see Message.Data.
func (r *ThreadReader) data(ctx context.Context, step *backend.Step, id string) (json.RawMessage, error) {
	type part struct {
		Type      string `json:"type"`
		Text      string `json:"text,omitempty"`
		MediaType string `json:"mediaType,omitempty"`
		Filename  string `json:"filename,omitempty"`
		URL       string `json:"url,omitempty"`
		Metadata  any    `json:"providerMetadata,omitempty"`
	}
	usages := step.Span.Usages
	parts, erased := []part{}, 0
	for i := 0; i < len(usages); i = form.End(usages, i) {
		u := &usages[i]
		mediaType := u.Type
		if mediaType == "" {
			mediaType = step.Blocks[i].Type
		}
		if !u.Form.IsZero() {
			mediaType = content.TypeJSON
		}
		file := part{Type: "file", MediaType: mediaType, Filename: u.Filename, URL: "lineage:content/" + u.Content.String()}
		if u.Kind == structure.DocumentUsage {
			file.Filename, file.Metadata = u.Document, map[string]Revision{"lineage": {u.Document, u.Revision}}
		}
		if u.Kind == structure.AssetUsage || mediaType != content.TypeJSON && !strings.HasPrefix(mediaType, "text/") {
			parts = append(parts, file)
			continue
		}
		m, err := r.messages.Message(ctx, step, i)
		if err != nil {
			return nil, err
		}
		body, err := r.messages.Original(ctx, m)
		if errors.Is(err, backend.ErrErased) {
			body, err = r.messages.Left(ctx, m)
		}
		if errors.Is(err, form.ErrMismatch) && !r.exact {
			body, mediaType, err = []byte(form.Tell(m.Pieces)), content.TypeText, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case body == nil:
			erased++
			parts = append(parts, part{Type: "text", Text: form.Erased})
			continue
		case u.Kind == structure.DocumentUsage:
			parts = append(parts, file)
		case mediaType == content.TypeJSON && form.End(usages, 0) == len(usages) && rawjson.Valid(body):
			return bytes.Clone(body), nil // the caller may keep and change it
		case mediaType == content.TypeJSON && rawjson.Valid(body):
			body = []byte(form.Text(body, u.Role))
		}
		parts = append(parts, part{Type: "text", Text: string(body), Metadata: file.Metadata})
	}
	if erased == len(parts) {
		return json.RawMessage("null"), nil
	}
	return json.Marshal(struct {
		ID    string `json:"id"`
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}{id, roleOf(step), parts})
}

// Revision is a revision of a document, as stated in the provider metadata of parts.
type Revision struct {
	Document string `json:"document"`
	Number   uint64 `json:"revision"`
}

// RevisionOf returns the revision stated in a part of a message, which is JSON. For other parts it returns the zero
// value.
func RevisionOf(part json.RawMessage) (r Revision) {
	if bytes.Contains(part, []byte(`"lineage"`)) {
		_ = json.Unmarshal(rawjson.Get(rawjson.Get(part, "providerMetadata"), "lineage"), &r) // anything else is none
	}
	return r
}

// roleOf returns the name of the message at a step.
func roleOf(step *backend.Step) string {
	for i := range step.Span.Usages {
		if u := &step.Span.Usages[i]; u.Kind == structure.MessageUsage {
			return u.Role
		}
	}
	return step.Span.Usages[0].Kind.String()
}
