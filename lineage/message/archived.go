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
		if byUser := f["isCreatedByUser"]; rawjson.IsTrue(byUser) {
			role = "user"
		} else if byUser != nil {
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
		role, content = DeepSeekRole(f["fragments"]), deepSeekContent(f["fragments"])
	case f["_id"] != nil && f.has("sender") && f["message"] != nil: // Grok
		role, content = GrokRole(f.text("sender")), grokContent(f)
	default:
		return nil, ""
	}
	if content == nil {
		content = []byte("null")
	}
	return new(object).textIf("role", role).textIf("name", name).raw("content", content).bytes(), role
}

// DeepSeekRole returns the role of a message of DeepSeek by its fragments.
func DeepSeekRole(fragments []byte) string {
	for e := range rawjson.Elements(fragments) {
		if fieldsOf(e).text("type") == "REQUEST" {
			return "user"
		}
	}
	return "assistant"
}

// GrokRole returns the role of a sender of Grok. Those that are not the user are models.
func GrokRole(sender string) string {
	if roles[sender] == "user" {
		return "user"
	}
	return "assistant"
}

// deepSeekContent reads the fragments of a message of DeepSeek.
func deepSeekContent(fragments []byte) []byte {
	var content composed
	for e := range rawjson.Elements(fragments) {
		f := fieldsOf(e)
		kind, isText := f.text("type"), rawjson.IsString(f["content"])
		switch {
		case kind == "THINK" && isText:
			content.thinking(f.text("content"))
		case kind == "SEARCH" && f["results"] != nil: // by the service
			content.part(new(object).text("type", "server_tool_use").text("name", "search").raw("input", []byte("{}")))
			content.part(new(object).text("type", "search_tool_result").text("content", string(f["results"])))
		case isText:
			content.text(f.text("content"))
		default:
			content = append(content, e)
		}
	}
	return content.content()
}

// grokContent reads the content of a message of Grok.
func grokContent(f fields) []byte {
	var content composed
	if trace := f.text("thinking_trace"); trace != "" {
		content.thinking(trace)
	}
	if text := f.text("message"); text != "" {
		content.text(text)
	}
	for url := range rawjson.Elements(f["generated_image_urls"]) {
		if rawjson.IsString(url) {
			content.part(new(object).text("type", "image_url").raw("image_url", new(object).raw("url", url).bytes()))
		}
	}
	return content.content()
}

// composed is the content of a message that is put together of parts.
type composed []json.RawMessage

func (s *composed) part(o *object)   { *s = append(*s, o.bytes()) }
func (s *composed) text(text string) { s.part(new(object).text("type", "text").text("text", text)) }
func (s *composed) thinking(text string) {
	s.part(new(object).text("type", "thinking").text("thinking", text))
}

// content returns the parts, or an empty text for none.
func (s composed) content() []byte {
	if len(s) == 0 {
		return quote("")
	}
	return list(s)
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
