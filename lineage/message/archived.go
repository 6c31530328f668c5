package message

import (
	"cmp"
	"encoding/json"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// archived reads a message of exports and data sets that have other names for role and content. It returns {role,
// name, content} and the role, or nil for other messages. given is the role if the message has none.
func archived(f fields, given string) (message []byte, role string) {
	role = given
	name, content := f.text("name"), f["content"]
	switch {
	case rawjson.IsObject(f["author"]) && content != nil: // ChatGPT
		author := fieldsOf(f["author"])
		role, name = author.text("role"), author.text("name")
	case f["uuid"] != nil && f.text("sender") != "": // Claude.ai
		role = cmp.Or(roles[f.text("sender")], given)
		content = f.contentOrText()
	case f["messageId"] != nil && (content != nil || f["text"] != nil): // LibreChat
		if by := f["isCreatedByUser"]; rawjson.IsTrue(by) {
			role = "user"
		} else if by != nil {
			role = "assistant"
		}
		content = f.contentOrText()
	case f["message_id"] != nil && f["text"] != nil && f.has("role"): // Open Assistant
		role, content = f.text("role"), f["text"]
		role = cmp.Or(roles[role], role)
	case f.text("from") != "" && f["value"] != nil: // ShareGPT
		role, content = f.text("from"), f["value"]
		switch role {
		case "function_call":
			call := []byte(rawjson.Str(content))
			if rawjson.Check(call) == nil && !rawjson.IsString(trim(call)) {
				return trim(call), "assistant"
			}
			role = "assistant"
		case "observation":
			role = "tool"
		default:
			role = cmp.Or(roles[role], given, role)
		}
	case f["parentId"] != nil && f.has("role") && content != nil && !f.saysMore(): // Open WebUI
		role = f.text("role")
	case rawjson.IsArray(f["fragments"]): // DeepSeek
		role, content = fragments(f["fragments"])
	case f["_id"] != nil && f.has("sender") && f["message"] != nil: // Grok
		role, content = grokMessage(f)
	default:
		return nil, ""
	}
	if content == nil {
		content = []byte("null")
	}
	return new(object).textIf("role", role).textIf("name", name).raw("content", content).bytes(), role
}

// fragments reads the content of a message of DeepSeek.
func fragments(raw []byte) (role string, content []byte) {
	role = "assistant"
	var parts []json.RawMessage
	for e := range rawjson.Elements(raw) {
		f := fieldsOf(e)
		said, isText := f.text("content"), rawjson.IsString(f["content"])
		switch kind := f.text("type"); {
		case kind == "THINK" && isText:
			parts = append(parts, new(object).text("type", "thinking").text("thinking", said).bytes())
			continue
		case kind == "SEARCH" && f["results"] != nil: // by the service
			parts = append(parts, new(object).text("type", "server_tool_use").text("name", "search").raw("input", []byte("{}")).bytes(),
				new(object).text("type", "search_tool_result").text("content", string(f["results"])).bytes())
			continue
		case kind == "REQUEST":
			role = "user"
		}
		if isText {
			e = new(object).text("type", "text").text("text", said).bytes()
		}
		parts = append(parts, e)
	}
	if len(parts) == 0 {
		return role, quote("")
	}
	return role, list(parts)
}

// grokMessage reads the content of a message of Grok.
func grokMessage(f fields) (role string, content []byte) {
	if role = roles[f.text("sender")]; role != "user" {
		role = "assistant" // other senders are models
	}
	var parts []json.RawMessage
	if trace := f.text("thinking_trace"); trace != "" {
		parts = append(parts, new(object).text("type", "thinking").text("thinking", trace).bytes())
	}
	if said := f.text("message"); said != "" {
		parts = append(parts, new(object).text("type", "text").text("text", said).bytes())
	}
	for url := range rawjson.Elements(f["generated_image_urls"]) {
		if rawjson.IsString(url) {
			parts = append(parts, new(object).text("type", "image_url").raw("image_url", new(object).raw("url", url).bytes()).bytes())
		}
	}
	if len(parts) == 0 {
		return role, quote("")
	}
	return role, list(parts)
}

// saysMore reports whether a message also has members of provider formats.
func (f fields) saysMore() bool {
	for _, key := range [...]string{"tool_calls", "tool_call_id", "function_call", "parts", "reasoning_content"} {
		if f[key] != nil {
			return true
		}
	}
	return false
}

// contentOrText returns the content, unless it is empty and the message also has a text.
func (f fields) contentOrText() []byte {
	for range rawjson.Elements(f["content"]) {
		return f["content"]
	}
	if f.text("content") != "" {
		return f["content"]
	}
	return f["text"]
}
