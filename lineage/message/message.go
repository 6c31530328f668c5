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
	// OpenAI is the messages of OpenAI's chat completions.
	OpenAI Dialect = "openai"
	// Responses is the input items of OpenAI's Responses API.
	Responses Dialect = "responses"
	// Anthropic is the messages of Anthropic's Messages API.
	Anthropic Dialect = "anthropic"
	// UI is the messages of the AI SDK's user interfaces (UIMessage).
	UI Dialect = "ui"
)

// Dialects lists the dialects.
func Dialects() []Dialect { return []Dialect{Text, OpenAI, Responses, Anthropic, UI} }

// Message is one message of a conversation.
type Message struct {
	// ID is the message's id, if its format has one. Role and Name are as given.
	ID, Role, Name string
	Parts          []Part
	// Given is the JSON that the message was decoded from, nil if it had no role. If a dialect
	// accepts it, it is written unchanged. Clear it after changing a field.
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

// Part is a part of a message. Fields that do not apply to its kind are empty.
type Part struct {
	Kind Kind
	// Text is the content of a text or reasoning.
	Text string
	// Tool is the tool of a call or result. A call and its result have the same CallID.
	Tool, CallID string
	// Input is the input of a call: any JSON. If the input is not JSON, it is in Text.
	Input json.RawMessage
	// Output is the result of a call: texts, files and data. Failed is set if the call failed.
	Output []Part
	Failed bool
	// Hosted is set for calls and results of tools that the provider runs.
	Hosted bool
	// URL is the location of a file, or a data: URL with its content. FileID is its id at the
	// provider.
	MediaType, Filename, URL, FileID string
	// Data is any JSON. Name is its name in its format.
	Name string
	Data json.RawMessage
	// Given is the JSON that the part was decoded from. Clear it after changing a field.
	Given json.RawMessage
}

// Loss is something that a dialect cannot express.
type Loss struct {
	// Message and Part are indexes. Part is -1 if the loss concerns the whole message.
	Message, Part int
	Reason        string
}

// Encoded is a history in a dialect. It may share memory with the messages.
type Encoded struct {
	// System are the system prompts that do not go into Items: for Anthropic, those at the start of
	// the history.
	System []string
	Items  []json.RawMessage
	Losses []Loss
}

// String returns the message as text for people: texts and reasoning, calls and results, a note for
// each file. Data is omitted if there are other parts.
func (m *Message) String() string {
	var texts []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind != DataKind && (p.Kind != TextKind || p.Text != "") {
			texts = append(texts, p.String())
		}
	}
	if len(texts) == 0 {
		for i := range m.Parts {
			if s := m.Parts[i].String(); s != "" {
				texts = append(texts, s)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}

// String returns the part as text.
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

// Label returns a short description of a file.
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

// Arguments returns the input of a call as text.
func (p *Part) Arguments() string {
	if p.Input == nil {
		return p.Text
	}
	return string(p.Input)
}

// OutputText returns the result of a call as text.
func (p *Part) OutputText() string {
	if len(p.Output) == 1 {
		return p.Output[0].String()
	}
	var texts []string
	for i := range p.Output {
		if s := p.Output[i].String(); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n\n")
}

// isTool reports whether messages with a role are results of tools.
func isTool(role string) bool { return role == "tool" || role == "function" }

// roles maps the role names of all formats.
var roles = map[string]string{
	"user": "user", "human": "user", "prompter": "user", "assistant": "assistant", "ai": "assistant", "gpt": "assistant", "model": "assistant", "bot": "assistant",
	"chatbot": "assistant", "system": "system", "developer": "developer", "tool": "tool", "function": "tool",
}

// isPlaceholder reports whether a URL is valid only inside the store.
func isPlaceholder(url string) bool { return strings.HasPrefix(url, "lineage:") }
