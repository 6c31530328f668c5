package message

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// maxDepth limits how deeply nested parts are read.
const maxDepth = 8

// Decode reads a stored body: a message or a list of messages. role applies if the body has none.
// The result shares memory with the body.
func Decode(body []byte, mediaType, role string) []Message {
	kind, _, _ := strings.Cut(mediaType, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		if rawjson.Check(body) != nil {
			return one(plain(string(body), role))
		}
		return decodeValue(trim(body), role, 0)
	case kind == "" || strings.HasPrefix(kind, "text/"):
		return one(plain(string(body), role))
	}
	url := "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(body)
	return one(Message{Role: role, Parts: []Part{{Kind: FileKind, MediaType: kind, URL: url}}})
}

func one(m Message) []Message { return []Message{m} }

func trim(raw []byte) []byte { return bytes.TrimRight(raw[rawjson.SkipSpace(raw, 0):], " \t\r\n") }

// plain returns the message for a text. For a tool, the text is a result.
func plain(text, role string) Message {
	return Message{Role: role, Parts: asSaid([]Part{{Kind: TextKind, Text: text}}, role, "")}
}

// isTool reports whether messages with a role are results of tools.
func isTool(role string) bool { return role == "tool" || role == "function" }

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

func decodeValue(raw []byte, role string, depth int) []Message {
	switch {
	case rawjson.IsString(raw):
		m := plain(rawjson.Str(raw), role)
		m.Given = asContent(raw, role)
		return one(m)
	case rawjson.IsObject(raw):
		return decodeObject(raw, role, depth)
	case rawjson.IsArray(raw):
		return decodeList(raw, role, depth)
	case rawjson.IsNull(raw):
		return one(Message{Role: role})
	}
	return one(plain(string(raw), role))
}

// decodeList reads a list of messages or of parts.
func decodeList(raw []byte, role string, depth int) []Message {
	messages := depth < maxDepth
	n := 0
	for e := range rawjson.Elements(raw) {
		n++
		messages = messages && rawjson.IsObject(e) && isMessage(fieldsOf(e))
	}
	if messages && n > 0 {
		var out []Message
		for e := range rawjson.Elements(raw) {
			out = append(out, decodeObject(e, role, depth+1)...)
		}
		return out
	}
	return one(Message{Role: role, Parts: asSaid(contents(raw, depth), role, ""), Given: asContent(raw, role)})
}

// asContent returns a message with the role and content, nil if the role is empty.
func asContent(raw []byte, role string) []byte {
	if role == "" {
		return nil
	}
	return new(object).text("role", role).raw("content", raw).bytes()
}

// isMessage reports whether an object in a list is a message rather than a part.
func isMessage(f fields) bool {
	kind := f.text("type")
	return f.has("role") && (f.has("content") || f.has("parts") || f.has("tool_calls") || f.has("function_call")) ||
		responsesItems[kind] && (kind != "reasoning" || f.has("summary"))
}

// decodeObject reads a message, or a part as a message of its own.
func decodeObject(raw []byte, role string, depth int) []Message {
	f := fieldsOf(raw)
	if inner, as := enveloped(f); inner != nil && depth < maxDepth {
		if as == "" {
			as = role
		}
		return decodeObject(inner, as, depth+1)
	}
	if m, ok := agentMessage(f, role, depth); ok {
		return one(m)
	}
	if inner, as := archived(f, role); inner != nil && depth < maxDepth {
		return decodeValue(inner, as, depth+1)
	}
	m := Message{ID: f.text("id"), Role: f.text("role"), Name: f.text("name"), Given: raw}
	if m.Role == "" {
		m.Role, m.Given = role, withRole(raw, role)
	}
	kind := f.text("type")
	switch {
	case rawjson.IsArray(f["parts"]) && kind == "":
		decodeParts(&m, f)
	case responsesItems[kind] && kind != "message":
		m.Given, m.Parts, m.Name = raw, decodeItem(f, kind, raw, depth), ""
		if m.Role = "assistant"; m.Parts[0].Kind == ResultKind {
			m.Role = "tool"
		}
	case isChat(f, kind):
		decodeChat(&m, f, depth)
	default:
		parts, ok := decodePart(raw, depth)
		if !ok {
			parts = []Part{{Kind: DataKind, Data: raw, Given: raw}}
		}
		return one(Message{ID: m.ID, Role: m.Role, Parts: asSaid(parts, m.Role, "")})
	}
	return one(m)
}

// isChat reports whether an object is a message with content rather than a part with content.
func isChat(f fields, kind string) bool {
	if f.text("role") == "" && kind != "" && kind != "message" {
		return false
	}
	for _, key := range []string{"content", "tool_calls", "function_call", "refusal", "reasoning_content", "audio"} {
		if f[key] != nil {
			return true
		}
	}
	return false
}

// enveloped returns the message in a log line, and its role.
func enveloped(f fields) (inner []byte, role string) {
	switch kind := f.text("type"); {
	case (kind == "user" || kind == "assistant") && rawjson.IsObject(f["message"]): // Claude Code
		return f["message"], kind
	case kind == "response_item" && rawjson.IsObject(f["payload"]): // Codex
		return f["payload"], ""
	case rawjson.IsArray(f["id"]) && rawjson.IsObject(f["kwargs"]): // LangChain
		class := ""
		for e := range rawjson.Elements(f["id"]) {
			class = strings.TrimSuffix(rawjson.Str(e), "Chunk")
		}
		roles := map[string]string{"HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool", "FunctionMessage": "function"}
		return rawjson.Remove(f["kwargs"], "type"), roles[class]
	}
	return nil, ""
}

// decodeChat reads a message with a member "content": of chat completions, Anthropic, the Responses
// API, or exports.
func decodeChat(m *Message, f fields, depth int) {
	for _, key := range []string{"reasoning_content", "reasoning"} {
		if text := f.text(key); text != "" {
			m.Parts = append(m.Parts, Part{Kind: ReasoningKind, Text: text})
			break
		}
	}
	content := contents(f["content"], depth)
	if rawjson.IsString(f["content"]) && len(content) == 0 {
		content = []Part{{Kind: TextKind}}
	}
	callID := f.text("tool_call_id")
	for id := range rawjson.Elements(f["tool_call_ids"]) { // SWE-agent
		callID = cmp.Or(callID, rawjson.Str(id))
	}
	m.Parts = append(m.Parts, asSaid(content, m.Role, callID)...)
	if isTool(m.Role) && m.Name != "" {
		for i := range m.Parts {
			if m.Parts[i].Kind == ResultKind && m.Parts[i].Tool == "" {
				m.Parts[i].Tool = m.Name
			}
		}
	}
	if text := f.text("refusal"); text != "" {
		m.Parts = append(m.Parts, Part{Kind: TextKind, Text: text, Given: new(object).text("type", "refusal").raw("refusal", f["refusal"]).bytes()})
	}
	if rawjson.IsObject(f["audio"]) {
		audio := fieldsOf(f["audio"])
		if text := audio.text("transcript"); text != "" && len(content) == 0 {
			m.Parts = append(m.Parts, Part{Kind: TextKind, Text: text})
		} else {
			m.Parts = append(m.Parts, Part{Kind: DataKind, Name: "audio", Data: f["audio"]})
		}
	}
	for e := range rawjson.Elements(f["tool_calls"]) {
		m.Parts = append(m.Parts, toolCall(e))
	}
	if rawjson.IsObject(f["function_call"]) {
		c := fieldsOf(f["function_call"])
		p := Part{Kind: CallKind, Tool: c.text("name")}
		p.setInput(c["arguments"])
		m.Parts = append(m.Parts, p)
	}
}

// withRole adds the role to a message stored without it; nil if the role is empty.
func withRole(raw []byte, role string) []byte {
	if role == "" {
		return nil
	}
	out := append([]byte(`{"role":`), quote(role)...)
	if at := rawjson.SkipSpace(raw, 1); at < len(raw) && raw[at] != '}' {
		out = append(out, ',')
	}
	return append(out, raw[1:]...)
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

// decodeParts reads a message with parts: a UI message, or one of ChatGPT or Gemini.
func decodeParts(m *Message, f fields) {
	m.Parts = asSaid(contents(f["parts"], 0), m.Role, "")
	isUI := !f.has("content_type")
	for e := range rawjson.Elements(f["parts"]) {
		_, isCrush := crushPart(fieldsOf(e), rawjson.Str(rawjson.Get(e, "type")), e)
		isUI = isUI && !isCrush && rawjson.IsString(rawjson.Get(e, "type"))
	}
	if !isUI {
		m.Given = nil
	}
}

// contents reads the content of a message or result: a text, a list of parts, or one part.
func contents(raw []byte, depth int) []Part {
	switch {
	case raw == nil || rawjson.IsNull(raw):
		return nil
	case rawjson.IsString(raw):
		if text := rawjson.Str(raw); text != "" {
			return []Part{{Kind: TextKind, Text: text}}
		}
		return nil
	case rawjson.IsArray(raw):
		var parts []Part
		known := false
		for e := range rawjson.Elements(raw) {
			if rawjson.IsString(e) {
				known = true
				parts = append(parts, Part{Kind: TextKind, Text: rawjson.Str(e)})
				continue
			}
			some, ok := decodePart(e, depth+1)
			if !ok {
				some = []Part{{Kind: DataKind, Data: e, Given: e}}
			}
			known = known || ok
			parts = append(parts, some...)
		}
		if !known && len(parts) > 0 {
			return []Part{{Kind: DataKind, Data: raw}}
		}
		return parts
	}
	if parts, ok := decodePart(raw, depth+1); ok {
		return parts
	}
	return []Part{{Kind: DataKind, Data: raw, Given: raw}}
}
