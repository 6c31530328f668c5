package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// The types of parts that have a fixed name. A call of a tool known by name is
// "tool-" with that name, and data of the application's own is "data-" with a name.
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

// Part is one piece of a message. Which fields apply depends on Type; a part of
// an unknown type, and fields not listed here, are kept as they came. JSON held
// in a field must be replaced, not changed in place.
type Part struct {
	Type string

	Text  string // of text and reasoning
	State string // how far text, reasoning or a tool call has come

	ToolName   string // of a dynamic tool; ask Tool for the name of any
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

// Tool returns the name of the tool that the part calls, and whether it is a
// call at all.
func (p Part) Tool() (name string, ok bool) {
	if p.Type == PartDynamicTool {
		return p.ToolName, true
	}
	return strings.CutPrefix(p.Type, toolPrefix)
}

// DataName returns the application's name for its data, and whether the part is
// such data.
func (p Part) DataName() (name string, ok bool) { return strings.CutPrefix(p.Type, dataPrefix) }

// partField binds a field to its place in the stored form: either text or json
// is set.
type partField struct {
	name string
	text *string
	json *json.RawMessage
}

// fields lists what a part stores, in the order in which a new one is written.
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

// decodePart reads a part from valid JSON. What is not of the expected kind is
// left to raw.
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

// encode returns the part's JSON: what it was decoded from, with the fields
// replaced that have changed since.
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
