package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// dialects are the dialects of the formats for programs.
var dialects = map[Format]message.Dialect{
	OpenAI: message.Chat, Responses: message.Responses, Anthropic: message.Anthropic, ShareGPT: message.Chat,
}

// Loss is something of a conversation that a format cannot express.
type Loss struct {
	// Thread is zero for a context outside of threads.
	Thread lineage.ThreadID
	// Position is the position of the message, 0 if the loss is not in a message of the history.
	Position uint64
	Reason   string
}

// translation is a history as messages of any API.
type translation struct {
	messages []message.Message
	// positions are the positions of the messages in the history.
	positions []uint64
}

// add adds the messages in an entry.
func (t *translation) add(e *lineage.Entry, body []byte) {
	for _, m := range Messages(e, body) {
		t.messages, t.positions = append(t.messages, m), append(t.positions, e.Position)
	}
}

// Messages returns the messages in an entry with its body: one, or several if that is a list.
func Messages(e *lineage.Entry, body []byte) []message.Message {
	messages := said(e, body)
	if len(messages) > 0 {
		nameAs(e, &messages[0])
	}
	return messages
}

// nameAs gives a message the name of its entry, unless it has its own. That of a tool's message is
// the tool.
func nameAs(e *lineage.Entry, m *message.Message) {
	if e.Kind != lineage.Message || e.Name == "" || e.Name == e.Role || m.Name != "" {
		return
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.CallKind || p.Kind == message.ResultKind {
			if p.Tool == "" {
				p.Tool = e.Name
			}
			return
		}
	}
	m.Name = e.Name
	if m.Given != nil {
		m.Given = rawjson.Set(m.Given, []byte(`"name"`), rawjson.Quote(e.Name))
	}
}

// encode writes the messages in a dialect.
func (t *translation) encode(to message.Dialect, thread lineage.ThreadID, lost func(Loss)) (*message.Encoded, error) {
	out, err := message.Encode(to, t.messages)
	if err != nil {
		return nil, err
	}
	for _, l := range out.Losses {
		lost(Loss{Thread: thread, Position: t.positions[l.Message], Reason: l.Reason})
	}
	return out, nil
}

// translate reads a history and writes it in a dialect.
func (x *exporter) translate(ctx context.Context, conv *conversation, said history, to message.Dialect) (*message.Encoded, error) {
	var t translation
	for e, err := range said {
		if err != nil {
			return nil, err
		}
		body, err := x.mustBody(ctx, e)
		if err != nil {
			return nil, err
		}
		t.add(e, body)
	}
	return t.encode(to, conv.info.ID, x.o.Lost)
}

// request returns a history as a request.
func (x *exporter) request(ctx context.Context, conv *conversation, said history, format Format) (json.RawMessage, error) {
	encoded, err := x.translate(ctx, conv, said, dialects[format])
	if err != nil {
		return nil, err
	}
	return requestOf(format, encoded), nil
}

// requestOf returns the body of a request: the messages, and the system prompt where the API has it
// separately.
func requestOf(format Format, encoded *message.Encoded) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	if len(encoded.System) > 0 {
		b.WriteString(`"system":`)
		b.Write(rawjson.Quote(strings.Join(encoded.System, "\n\n")))
		b.WriteByte(',')
	}
	list := `"messages":[`
	if format == Responses {
		list = `"input":[`
	}
	b.WriteString(list)
	for i, item := range encoded.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(item)
	}
	b.WriteString("]}")
	return b.Bytes()
}

// Request returns what a context was resolved to as the body of a request in OpenAI, Responses or
// Anthropic. A summary is a system message. Erased messages are left out.
func Request(ctx context.Context, store *lineage.Store, format Format, r *lineage.Resolved, lost func(Loss)) (json.RawMessage, error) {
	if !format.ForPrograms() || format == ShareGPT {
		return nil, fmt.Errorf("%w %q", ErrUnknownFormat, format)
	}
	if lost == nil {
		lost = func(Loss) {}
	}
	x := &exporter{store: store, o: Options{MaxBody: defaultMaxBody}}
	var t translation
	if r.SystemPrompt != "" {
		t.add(promptEntry(r.SystemPrompt), []byte(r.SystemPrompt))
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		if p.Summary != nil {
			text := fmt.Sprintf("Summary of messages %d to %d:\n\n%s", p.Summary.First, p.Summary.Last, p.Summary.Text)
			t.add(promptEntry(text), []byte(text))
			continue
		}
		if p.Entry.Erased {
			lost(Loss{Position: p.Entry.Position, Reason: "it was erased: left out"})
			continue
		}
		body, err := x.mustBody(ctx, p.Entry)
		if err != nil {
			return nil, err
		}
		t.add(p.Entry, body)
	}
	encoded, err := t.encode(dialects[format], lineage.ThreadID{}, lost)
	if err != nil {
		return nil, err
	}
	return requestOf(format, encoded), nil
}
