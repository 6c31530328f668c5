package lineage

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// Request is a history in the form of messages for the API of a provider.
type Request struct {
	Dialect message.Dialect
	// System are the system prompts, for an API that takes them separately: for Anthropic, those at the start of the
	// history. Messages is everything else.
	System   []string
	Messages []json.RawMessage
	// Losses are parts of the history that the API cannot express.
	Losses []Loss
	// Resolved is what the request was made from. It is nil if Encode made it.
	Resolved *Resolved
}

// Loss is a part of a history that an API cannot express. Position is that of its message, zero if it is not in the
// history.
type Loss struct {
	Position uint64
	Reason   string
}

// Body returns the messages as the body of a request, to which a model and settings can be added: {"messages":[…]}.
// For Anthropic it has a member "system". For the Responses API "messages" is named "input".
func (r *Request) Body() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	if len(r.System) > 0 {
		b.WriteString(`"system":`)
		b.Write(rawjson.Quote(strings.Join(r.System, "\n\n")))
		b.WriteByte(',')
	}
	list := `"messages":[`
	if r.Dialect == message.Responses {
		list = `"input":[`
	}
	b.WriteString(list)
	for i, m := range r.Messages {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// MostBody is the maximum size of a body in a request. maxRequest is the maximum size of all large bodies together.
const (
	MostBody   = 64 << 20
	maxRequest = 512 << 20
)

// Request resolves the context and writes the result for the API of a provider: what to send to a model, in
// one call. Calls and results of tools are paired as the API requires. A summary is a system message,
// and erased messages are left out. A body of more than MostBody is ErrTooLarge.
func (c *Context) Request(ctx context.Context, to message.Dialect, o ResolveOptions) (*Request, error) {
	resolved, err := c.Resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	var erased []Loss
	r, err := c.store.Encode(ctx, to, MostBody, func(yield func(*Entry, error) bool) {
		if resolved.SystemPrompt != "" && !yield(SystemPrompt(resolved.SystemPrompt), nil) {
			return
		}
		for i := range resolved.Parts {
			p := &resolved.Parts[i]
			e := p.Entry
			switch {
			case p.Summary != nil:
				e = SystemPrompt(fmt.Sprintf("Summary of messages %d to %d:\n\n%s", p.Summary.First, p.Summary.Last, p.Summary.Text))
			case e.Erased:
				erased = append(erased, Loss{Position: e.Position, Reason: "it was erased: left out"})
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	r.Resolved = resolved
	r.Losses = append(erased, r.Losses...)
	return r, nil
}

// SystemPrompt returns a system prompt as an entry that is not in a history. An item with one is System.
func SystemPrompt(text string) *Entry {
	return &Entry{Kind: Message, Role: "system", Name: "system", Type: content.TypeText, Size: int64(len(text)), Body: []byte(text)}
}

// Encode writes entries for the API of a provider. If a body is larger than maxBody, the error is ErrTooLarge. Erased
// content becomes a note.
func (s *Store) Encode(ctx context.Context, to message.Dialect, maxBody int64, entries iter.Seq2[*Entry, error]) (*Request, error) {
	var history []message.Message
	var positions []uint64
	total := int64(0) // of the bodies that were not loaded with their entries
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		body := e.Body
		if body == nil && !e.Erased && (e.Kind != Asset || message.IsImage(e.Type)) {
			if total += e.Size; e.Size > maxBody || total > maxRequest {
				return nil, fmt.Errorf("content %v of %d bytes, in a request of %d: %w", e.Content, e.Size, total, ErrTooLarge)
			}
			if body, err = s.Original(ctx, e); err != nil {
				return nil, err
			}
		}
		for _, m := range e.Messages(body) {
			history, positions = append(history, m), append(positions, e.Position)
		}
	}
	encoded, err := message.Encode(to, history)
	if err != nil {
		return nil, err
	}
	r := &Request{Dialect: to, System: encoded.System, Messages: encoded.Items}
	for _, l := range encoded.Losses {
		r.Losses = append(r.Losses, Loss{Position: positions[l.Message], Reason: l.Reason})
	}
	return r, nil
}

// Messages returns the messages in an entry with its body: one, or several if the body is a list. A document or an
// asset becomes a message of the user.
func (e *Entry) Messages(body []byte) []message.Message {
	messages := e.decode(body)
	if len(messages) > 0 {
		e.name(&messages[0])
	}
	return messages
}

func (e *Entry) decode(body []byte) []message.Message {
	text := func(role, text string) []message.Message {
		return []message.Message{{Role: role, Parts: []message.Part{{Kind: message.TextKind, Text: text}}}}
	}
	switch {
	case e.Erased:
		return text(e.Role, form.Erased)
	case e.Kind == Asset && message.IsImage(e.Type):
		url := "data:" + e.Type + ";base64," + base64.StdEncoding.EncodeToString(body)
		return []message.Message{{Role: "user", Parts: []message.Part{{Kind: message.FileKind, MediaType: e.Type, URL: url}}}}
	case e.Kind == Asset:
		return text("user", "["+e.FileLabel()+"]")
	case e.Kind == Document:
		return text("user", string(body))
	case e.Type != content.TypeJSON:
		return message.Decode(body, content.TypeText, e.Role)
	}
	return message.Decode(body, content.TypeJSON, e.Role)
}

// FileLabel describes an asset.
func (e *Entry) FileLabel() string {
	return fmt.Sprintf("file %s, %s, %d bytes", e.Filename, e.Type, e.Size)
}

// OwnName returns the name of an entry, empty if it is the role, or the type of a call or result in a session of Codex.
func (e *Entry) OwnName() string {
	if e.Name == e.Role || message.ItemRole(strings.TrimSuffix(e.Name, "_output")) != "" {
		return ""
	}
	return e.Name
}

// name gives a message the name of the entry, unless it has its own. The name of a tool's message is the tool.
func (e *Entry) name(m *message.Message) {
	name := e.OwnName()
	if e.Kind != Message || name == "" || m.Name != "" {
		return
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.CallKind || p.Kind == message.ResultKind {
			if p.Tool == "" {
				p.Tool = name
			}
			return
		}
	}
	m.Name = name
	if m.Given != nil {
		m.Given = rawjson.Set(m.Given, []byte(`"name"`), rawjson.Quote(name))
	}
}
