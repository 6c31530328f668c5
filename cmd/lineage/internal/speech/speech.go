// Package speech finds in a structured message what a person would read of it.
package speech

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxDepth is how deep parts may lie in each other.
const maxDepth = 32

// Of returns what a body says. Text says itself; of JSON it is the texts of its
// parts, with a line for each call of a tool and what came of it. JSON that has
// none of the forms known is returned as it is.
func Of(mediaType string, body []byte) string {
	if mediaType != "application/json" || !json.Valid(body) {
		return string(body)
	}
	var b strings.Builder
	if !say(&b, body, 0) || strings.TrimSpace(b.String()) == "" {
		return string(bytes.TrimSpace(body))
	}
	return strings.Trim(b.String(), "\n")
}

// part is the fields in which messages of the common formats say something.
type part struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Content   json.RawMessage `json:"content"`
	Parts     json.RawMessage `json:"parts"`
	Thinking  string          `json:"thinking"`
	Value     json.RawMessage `json:"value"`
	Name      string          `json:"name"`
	ToolName  string          `json:"toolName"`
	Input     json.RawMessage `json:"input"`
	Output    json.RawMessage `json:"output"`
	Function  *function       `json:"function"`
	ToolCalls []part          `json:"tool_calls"`
	Message   json.RawMessage `json:"message"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// say writes what a JSON value says and reports whether its form is known.
func say(b *strings.Builder, value []byte, depth int) bool {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || depth > maxDepth {
		return false
	}
	switch value[0] {
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil {
			return false
		}
		line(b, text)
		return true
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return false
		}
		for _, item := range list {
			if !say(b, item, depth+1) {
				line(b, string(item))
			}
		}
		return true
	case '{':
		var p part
		if json.Unmarshal(value, &p) != nil {
			return false
		}
		return p.say(b, depth)
	}
	return bytes.Equal(value, []byte("null"))
}

func (p *part) say(b *strings.Builder, depth int) bool {
	said := false
	if p.Thinking != "" {
		line(b, "(thinking) "+p.Thinking)
		said = true
	}
	switch {
	case p.Type == "tool_result" || p.Type == "function_call_output":
		b.WriteString("← ")
		said = say(b, first(p.Content, p.Output), depth+1) || said
	case strings.HasPrefix(p.Type, "tool-"):
		call(b, strings.TrimPrefix(p.Type, "tool-"), p.Input)
		if len(p.Output) > 0 {
			line(b, "← "+string(p.Output))
		}
		return true
	case p.Type == "tool_use" || p.Type == "dynamic-tool" || p.Type == "function_call":
		name := p.Name
		if name == "" {
			name = p.ToolName
		}
		call(b, name, p.Input)
		return true
	case p.Function != nil:
		call(b, p.Function.Name, p.Function.Arguments)
		return true
	default:
		for _, inner := range []json.RawMessage{p.Text, p.Content, p.Parts, p.Value, p.Message} {
			if len(inner) > 0 {
				said = say(b, inner, depth+1) || said
			}
		}
	}
	for i := range p.ToolCalls {
		said = p.ToolCalls[i].say(b, depth+1) || said
	}
	return said
}

func call(b *strings.Builder, name string, input json.RawMessage) {
	var compact bytes.Buffer
	if json.Compact(&compact, input) != nil {
		compact.Reset()
	}
	arguments := compact.String()
	var inner string
	if json.Unmarshal(input, &inner) == nil {
		arguments = inner // some formats keep the arguments as a string of JSON
	}
	line(b, "→ "+name+"("+arguments+")")
}

func line(b *strings.Builder, text string) {
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

func first(values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if len(v) > 0 {
			return v
		}
	}
	return nil
}
