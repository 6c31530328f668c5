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

// Histories that were not made here are chats too. A thread without a source id
// goes by its own, and a span without an id of the chat's, such as one that an agent added
// without one, that the chat shares with another, or that is an earlier version of a
// message, is a message under the name that foreignID gives it.

// IDOfThread returns the id of the chat that a thread is.
func IDOfThread(t *structure.Thread) string { return cmp.Or(t.SourceID, t.ID.String()) }

// foreignID names a span as a message of a thread.
func foreignID(thread structure.ThreadID, at structure.SpanRef) string {
	return thread.String() + "/" + at.String()
}

// findForeign is find for an id that foreignID gives.
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

// sees reports whether a span is of a chat. Only for one that neither belongs to it nor is on
// the active branch it looks at all contexts and checkpoints of the thread.
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

// data returns what a span says as the JSON of a message: as it was given, if it is one
// message of JSON, else as texts and files. A document is a file and, if it is a text, that text; both
// parts name the revision. What was erased is marked: see Message.Data.
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

// Revision is a revision of a document, as the provider metadata of parts name it.
type Revision struct {
	Document string `json:"document"`
	Number   uint64 `json:"revision"`
}

// RevisionOf returns the revision that a part of a message is, given as JSON; the zero value for
// other parts.
func RevisionOf(part json.RawMessage) (r Revision) {
	if bytes.Contains(part, []byte(`"lineage"`)) {
		_ = json.Unmarshal(rawjson.Get(rawjson.Get(part, "providerMetadata"), "lineage"), &r) // anything else is none
	}
	return r
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
