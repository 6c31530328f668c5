package message

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

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
