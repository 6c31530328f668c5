package message

import (
	"cmp"

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
	default:
		return nil, ""
	}
	if content == nil {
		content = []byte("null")
	}
	return new(object).textIf("role", role).textIf("name", name).raw("content", content).bytes(), role
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
