package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// ErrBadMessage is returned when bytes are not a message, or a message cannot be encoded as JSON.
var ErrBadMessage = errors.New("malformed message")

// The types of parts with a fixed name. A call of a named tool has the type "tool-<name>",
// application data "data-<name>".
const (
	PartText           = "text"
	PartReasoning      = "reasoning"
	PartDynamicTool    = "dynamic-tool"
	PartFile           = "file"
	PartSourceURL      = "source-url"
	PartSourceDocument = "source-document"
	PartStepStart      = "step-start"

	toolPrefix = "tool-"
	dataPrefix = "data-"
)

// Part is one part of a message. Type determines which fields apply. Parts of unknown types and
// unknown fields are kept. JSON in a field must be replaced, not changed in place.
type Part struct {
	Type string

	Text  string // of text and reasoning
	State string // progress of text, reasoning or a tool call

	ToolName   string // of a dynamic tool; Tool returns the name for any
	ToolCallID string
	Input      json.RawMessage
	Output     json.RawMessage
	ErrorText  string

	SourceID  string // of source-url and source-document
	MediaType string // of file and source-document
	Filename  string
	URL       string // of file and source-url
	Title     string

	ID   string // of data-*
	Data json.RawMessage

	raw []byte // the JSON this was decoded from, or nil
}

// TextPart returns a part of plain text.
func TextPart(text string) Part { return Part{Type: PartText, Text: text} }

// Tool returns the name of the called tool. ok is false if the part is not a tool call.
func (p Part) Tool() (name string, ok bool) {
	if p.Type == PartDynamicTool {
		return p.ToolName, true
	}
	return strings.CutPrefix(p.Type, toolPrefix)
}

// DataName returns the name of application data. ok is false if the part is not application data.
func (p Part) DataName() (name string, ok bool) { return strings.CutPrefix(p.Type, dataPrefix) }

// partField maps a member of the stored form to a field: text or json is set.
type partField struct {
	name string
	text *string
	json *json.RawMessage
}

// fields lists the members of a part in the order in which a new one is written.
func (p *Part) fields() []partField {
	return []partField{
		{name: "type", text: &p.Type},
		{name: "text", text: &p.Text},
		{name: "toolName", text: &p.ToolName},
		{name: "toolCallId", text: &p.ToolCallID},
		{name: "state", text: &p.State},
		{name: "input", json: &p.Input},
		{name: "output", json: &p.Output},
		{name: "errorText", text: &p.ErrorText},
		{name: "sourceId", text: &p.SourceID},
		{name: "mediaType", text: &p.MediaType},
		{name: "filename", text: &p.Filename},
		{name: "url", text: &p.URL},
		{name: "title", text: &p.Title},
		{name: "id", text: &p.ID},
		{name: "data", json: &p.Data},
	}
}

// decodePart reads a part from valid JSON. Members of an unexpected kind remain in raw only.
func decodePart(raw []byte) Part {
	p := Part{raw: raw}
	fields := p.fields()
	for m := range rawjson.Members(raw) {
		for _, f := range fields {
			switch {
			case f.name != m.Key:
			case f.json != nil:
				*f.json = m.Value
			default:
				*f.text = rawjson.Str(m.Value)
			}
		}
	}
	return p
}

// encode returns the part's JSON: the decoded bytes, with changed fields replaced.
func (p Part) encode() ([]byte, error) {
	if p.raw == nil && p.Type == "" {
		return nil, fmt.Errorf("%w: part without a type", ErrBadMessage)
	}
	out, before := p.raw, Part{}
	if p.raw == nil {
		out = []byte("{}")
	} else {
		before = decodePart(p.raw)
	}
	was := before.fields()
	for i, f := range p.fields() {
		var value []byte
		switch {
		case f.json != nil:
			if value = *f.json; bytes.Equal(value, *was[i].json) {
				continue
			}
			if len(value) > 0 && !rawjson.Valid(value) {
				return nil, fmt.Errorf("%w: part %s: %s is not JSON", ErrBadMessage, p.Type, f.name)
			}
		case f.name == "text" && p.raw == nil && (p.Type == PartText || p.Type == PartReasoning):
			value = rawjson.Quote(*f.text)
		case *f.text == *was[i].text:
			continue
		case *f.text != "" || f.name == "type" || f.name == "text":
			value = rawjson.Quote(*f.text)
		}
		if !rawjson.IsObject(out) {
			return nil, fmt.Errorf("%w: part is not an object", ErrBadMessage)
		}
		if len(value) == 0 {
			out = rawjson.Remove(out, f.name)
		} else {
			out = setMember(out, f.name, value)
		}
	}
	return out, nil
}
