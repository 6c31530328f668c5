package message

import (
	"encoding/json"
	"strings"
)

// Dialect is a format of messages.
type Dialect string

// The dialects.
const (
	// Text is plain text. An item is a JSON string.
	Text Dialect = "text"
	// Chat is the messages of OpenAI's chat completions.
	Chat Dialect = "chat-completions"
	// Responses is the input items of OpenAI's Responses API.
	Responses Dialect = "responses"
	// Anthropic is the messages of Anthropic's Messages API.
	Anthropic Dialect = "anthropic"
	// UI is the messages of the AI SDK's user interfaces (UIMessage).
	UI Dialect = "ui"
)

// Dialects lists the dialects.
func Dialects() []Dialect { return []Dialect{Text, Chat, Responses, Anthropic, UI} }

// Message is one message of a conversation.
type Message struct {
	// ID is the message's own id, where its format has one. Role and Name are as given.
	ID, Role, Name string
	Parts          []Part
	// Given is the JSON that the message was decoded from, nil where that had no role. It is
	// written again where a dialect takes it. After a change of the fields, clear it.
	Given json.RawMessage
}

// Kind is the kind of a part.
type Kind int

// The kinds of parts.
const (
	TextKind Kind = iota
	ReasoningKind
	FileKind
	CallKind
	ResultKind
	DataKind
)

func (k Kind) String() string {
	return [...]string{"text", "reasoning", "file", "call", "result", "data"}[k]
}

// Part is a part of a message. The fields that a kind does not name are empty.
type Part struct {
	Kind Kind
	// Text is that of a text or of reasoning.
	Text string
	// Tool is the tool of a call or result. CallID is the same for a call and its result.
	Tool, CallID string
	// Input is what a call gives the tool: any JSON, or nil where it is not JSON, which
	// Text then has.
	Input json.RawMessage
	// Output is what came of a call: texts, files and data. Failed says that the call failed.
	Output []Part
	Failed bool
	// Hosted says of a call and a result that the provider runs the tool.
	Hosted bool
	// URL is where a file is, or the file itself as a data: URL. FileID is its id at the provider.
	MediaType, Filename, URL, FileID string
	// Data is any JSON. Name is the name that its format has for it.
	Name string
	Data json.RawMessage
	// Given is the JSON that the part was decoded from. After a change of the fields, clear it.
	Given json.RawMessage
}

// Loss is something that a dialect cannot express.
type Loss struct {
	// Message and Part are indexes; Part is -1 where it is about the whole message.
	Message, Part int
	Reason        string
}

// Encoded is a history in a dialect. Its memory may be that of the messages.
type Encoded struct {
	// System are the system prompts that the dialect has no place for among its messages:
	// those at the start of a history for Anthropic.
	System []string
	Items  []json.RawMessage
	Losses []Loss
}

// String returns what a message says, for people to read: texts and reasoning, calls and
// results, a note for each file. Data is left out where there is anything else.
func (m *Message) String() string {
	var said []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind != DataKind && (p.Kind != TextKind || p.Text != "") {
			said = append(said, p.String())
		}
	}
	if len(said) == 0 {
		for i := range m.Parts {
			if s := m.Parts[i].String(); s != "" {
				said = append(said, s)
			}
		}
	}
	return strings.Join(said, "\n\n")
}

// String returns a part as text.
func (p *Part) String() string {
	switch p.Kind {
	case FileKind:
		return "[" + p.Label() + "]"
	case CallKind:
		return "[call of " + p.Tool + "] " + p.Arguments()
	case ResultKind:
		return p.OutputText()
	case DataKind:
		return string(p.Data)
	}
	return p.Text
}

// Label names a file.
func (p *Part) Label() string {
	label := strings.TrimSuffix(p.MediaType, "/*")
	if label == "" {
		label = "media"
	}
	switch {
	case p.Filename != "":
		label += " " + p.Filename
	case p.URL != "" && !strings.HasPrefix(p.URL, "data:") && !isPlaceholder(p.URL):
		label += " " + p.URL
	case p.FileID != "":
		label += " " + p.FileID
	}
	return label
}

// Arguments returns what a call gives the tool, as text.
func (p *Part) Arguments() string {
	if p.Input == nil {
		return p.Text
	}
	return string(p.Input)
}

// OutputText returns what came of a call, as text.
func (p *Part) OutputText() string {
	if len(p.Output) == 1 {
		return p.Output[0].String()
	}
	var said []string
	for i := range p.Output {
		if s := p.Output[i].String(); s != "" {
			said = append(said, s)
		}
	}
	return strings.Join(said, "\n\n")
}
