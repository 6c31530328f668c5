package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Message returns the message at a step, which must have been read with its bodies. parent is the id of the previous
// message.
func (r *ThreadReader) Message(ctx context.Context, step *backend.Step, parent Ref) (Message, error) {
	id, err := r.MessageID(ctx, step)
	if err != nil {
		return Message{}, err
	}
	m, err := r.message(ctx, step, id)
	m.ChatID, m.ParentID = IDOfThread(r.thread), parent
	return m, err
}

// MessageAt returns the message at a span.
func (r *ThreadReader) MessageAt(ctx context.Context, at structure.SpanRef) (m Message, err error) {
	for m, err = range r.chain(ctx, at, structure.Window{Last: 2}) {
		// The last one is the message, with its parent.
	}
	return m, err
}

// whole yields the messages of the history that ends at a span.
func (r *ThreadReader) whole(ctx context.Context, at structure.SpanRef) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		length, err := r.store.Position(ctx, at)
		if err == nil {
			err = r.findLaterVersions(ctx, length)
		}
		if err != nil {
			yield(Message{}, err)
			return
		}
		r.chain(ctx, at, structure.Window{})(yield)
	}
}

// chain yields the messages in a window of the history that ends at a span. The first one has no parent.
func (r *ThreadReader) chain(ctx context.Context, at structure.SpanRef, w structure.Window) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		parent := Ref("")
		for step, err := range r.from.Path(ctx, at, w, backend.PathOptions{Bodies: true}) {
			var m Message
			if err == nil {
				m, err = r.Message(ctx, step, parent)
			}
			if !yield(m, err) || err != nil {
				return
			}
			parent = Ref(m.ID)
		}
	}
}

// message returns the message at a step, with an id.
func (r *ThreadReader) message(ctx context.Context, step *backend.Step, id string) (Message, error) {
	u := &step.Span.Usages[0]
	m := Message{ID: id, Name: roleOf(step), CreatedAt: u.CreatedAt.UnixMilli(), Origin: originOf(step)}
	var err error
	if m.Type, err = r.typeOf(ctx, u); err == nil {
		m.Data, err = r.data(ctx, step, id)
	}
	if err != nil {
		return Message{}, fmt.Errorf("message %q: %w", id, err)
	}
	return m, nil
}

// typeMetadata returns the metadata of a message's usage. Only messages of an unusual type have any.
func typeMetadata(messageType string) []byte {
	b, _ := json.Marshal(map[string]string{"type": messageType}) // a string always marshals
	return b
}

// typeOf returns the type of the message of a usage. If its metadata was erased, it is TypeMessage.
func (r *ThreadReader) typeOf(ctx context.Context, u *structure.Usage) (string, error) {
	metadata, err := r.messages.Metadata(ctx, u)
	stated := rawjson.Str(rawjson.Get(metadata, "type"))
	if metadata == nil || !bytes.Equal(metadata, typeMetadata(stated)) {
		return TypeMessage, err // the metadata was not written by this package
	}
	return stated, nil
}

// data returns the content of a span as the JSON of a message. If the span is one JSON message, it is returned as it
// was given. Otherwise the message has texts and files. A document becomes a file and, if it is text, also that text;
// both parts name the revision. Erased content is marked: see Message.Data.
func (r *ThreadReader) data(ctx context.Context, step *backend.Step, id string) (json.RawMessage, error) {
	usages := step.Span.Usages
	parts, erased := []part{}, 0
	for i := 0; i < len(usages); i = form.End(usages, i) {
		u := &usages[i]
		file := fileOf(step, i)
		mediaType := file.MediaType
		if u.Kind == structure.AssetUsage || mediaType != content.TypeJSON && !strings.HasPrefix(mediaType, "text/") {
			parts = append(parts, file)
			continue
		}
		body, mediaType, err := r.body(ctx, step, i, mediaType)
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

// part is a part of a message that is not stored as JSON.
type part struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
	Filename  string `json:"filename,omitempty"`
	URL       string `json:"url,omitempty"`
	Metadata  any    `json:"providerMetadata,omitempty"`
}

// fileOf returns a usage as a file.
func fileOf(step *backend.Step, i int) part {
	u := &step.Span.Usages[i]
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
	return file
}

// body returns the body of a usage, nil if all of it was erased, and its type.
func (r *ThreadReader) body(ctx context.Context, step *backend.Step, i int, mediaType string) ([]byte, string, error) {
	m, err := r.messages.Message(ctx, step, i)
	if err != nil {
		return nil, "", err
	}
	body, err := r.messages.Original(ctx, m)
	if errors.Is(err, backend.ErrErased) {
		body, err = r.messages.Left(ctx, m)
	}
	if errors.Is(err, form.ErrMismatch) && !r.exact {
		return []byte(form.Tell(m.Pieces)), content.TypeText, nil
	}
	return body, mediaType, err
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
