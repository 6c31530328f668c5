package message

import (
	"bytes"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// maxDepth limits how deeply nested parts are read.
const maxDepth = 8

func trim(raw []byte) []byte { return bytes.TrimRight(raw[rawjson.SkipSpace(raw, 0):], " \t\r\n") }

func one(m Message) []Message { return []Message{m} }

// plain returns the message for a text. For a tool, the text is a result.
func plain(text, role string) Message {
	return Message{Role: role, Parts: asSaid([]Part{{Kind: TextKind, Text: text}}, role, "")}
}

// toolCall reads {id, function{name, arguments}}, {id, custom{name, input}} or {id, name, args}.
func toolCall(raw []byte) Part {
	f := fieldsOf(raw)
	p := Part{Kind: CallKind, CallID: f.first("id", "tool_call_id"), Given: raw}
	in := f
	for _, key := range []string{"function", "custom"} {
		if rawjson.IsObject(f[key]) {
			in = fieldsOf(f[key])
		}
	}
	p.Tool = in.text("name")
	if text := in["input"]; text != nil && in["arguments"] == nil {
		p.Text = rawjson.Str(text) // the input of a custom tool is text
		return p
	}
	p.setInput(in.firstRaw("arguments", "args"))
	return p
}

// setInput sets the input of a call, which is JSON or a string of JSON, depending on the format.
func (p *Part) setInput(raw []byte) {
	switch {
	case raw == nil:
		p.Input = []byte("{}")
	case rawjson.IsString(raw):
		text := rawjson.Str(raw)
		if rawjson.Check([]byte(text)) == nil {
			p.Input = []byte(text)
		} else {
			p.Text = text
		}
	default:
		p.Input = raw
	}
}

// asSaid wraps the parts of a tool's message in a result, unless they are results already.
func asSaid(parts []Part, role, callID string) []Part {
	if !isTool(role) {
		return parts
	}
	for i := range parts {
		if parts[i].Kind == ResultKind || parts[i].Kind == CallKind {
			return parts
		}
	}
	return []Part{{Kind: ResultKind, CallID: callID, Output: parts}}
}
