package archives

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
)

// nodeKey identifies a message by everything in it and in the messages before it.
type nodeKey [16]byte

func (k nodeKey) String() string { return hex.EncodeToString(k[:]) }

func (k *nodeKey) namespace(name string) {
	if name != "" {
		sum := sha256.Sum256([]byte(name))
		copy(k[:], sum[:])
	}
}

// next returns the key of a following message.
func (k nodeKey) next(n *archive.Node) nodeKey {
	h := sha256.New()
	h.Write(k[:])
	created, _ := n.Created.MarshalBinary()
	for _, part := range [][]byte{
		[]byte(n.Role), []byte(n.Name), []byte(n.Type), n.Body, []byte(n.ID), []byte(n.Model), []byte(n.UserID), n.Metadata, created,
	} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	var next nodeKey
	copy(next[:], h.Sum(nil))
	return next
}

// graphRoles maps LangChain's message types to roles.
var graphRoles = map[string]string{
	"human": "user", "HumanMessage": "user", "HumanMessageChunk": "user",
	"ai": "assistant", "AIMessage": "assistant", "AIMessageChunk": "assistant",
	"system": "system", "SystemMessage": "system", "SystemMessageChunk": "system",
	"tool": "tool", "ToolMessage": "tool", "ToolMessageChunk": "tool",
	"function": "function", "FunctionMessage": "function", "FunctionMessageChunk": "function",
}

// messageNode reads a message: an instance of a LangChain class, an object in LangChain's or a chat
// endpoint's format, or a pair of role and text.
func messageNode(v any) (archive.Node, bool) {
	var f fields
	role := ""
	switch v := v.(type) {
	case *instance:
		f, _ = v.value.(fields)
		if !strings.HasSuffix(strings.TrimSuffix(v.class, "Chunk"), "Message") || f == nil {
			return archive.Node{}, false
		}
		if role = graphRoles[v.class]; role == "" {
			role = graphRoles[f.text("type")]
		}
	case fields:
		f = v
		if data, ok := f.get("data").(fields); ok && graphRoles[f.text("type")] != "" {
			role, f = graphRoles[f.text("type")], data
		}
		if role == "" {
			role = graphRoles[f.text("type")]
		}
	case []any:
		if len(v) != 2 {
			return archive.Node{}, false
		}
		from, ok := v[0].(string)
		words, text := v[1].(string)
		if !ok || !text || from == "" {
			return archive.Node{}, false
		}
		if role = graphRoles[from]; role == "" {
			role = from
		}
		return archive.Node{Role: role, Body: []byte(words), Type: "text/plain"}, true
	default:
		return archive.Node{}, false
	}
	if role == "" {
		role = f.text("role")
	}
	hasContent := false
	for _, m := range f {
		hasContent = hasContent || m.key == "content"
	}
	if role == "" || !hasContent {
		return archive.Node{}, false
	}
	return graphMessage(role, f), true
}

// graphMessage returns a message of a role. Its body is the content and the calls, everything else is metadata.
func graphMessage(role string, f fields) archive.Node {
	n := archive.Node{Role: role, ID: f.text("id"), Name: f.text("name")}
	var content, more fields
	for _, m := range f {
		switch m.key {
		case "content":
			content = append(fields{m}, content...)
			continue
		case "tool_calls", "invalid_tool_calls", "function_call", "tool_call_id":
			if !empty(m.value) {
				content = append(content, m)
			}
			continue
		case "id", "name":
			if _, ok := m.value.(string); ok || m.value == nil {
				continue
			}
		case "type", "role":
			continue
		case "additional_kwargs":
			if empty(f.get("tool_calls")) {
				content = append(content, olderCalls(m.value)...)
			}
		case "response_metadata":
			if about, ok := m.value.(fields); ok {
				n.Model = cmp.Or(about.text("model_name"), about.text("model"))
			}
		}
		if !empty(m.value) {
			more = append(more, m)
		}
	}
	n.Body, n.Type = graphBody(content)
	if len(more) > 0 {
		n.Metadata = appendJSON(nil, more)
	}
	return n
}

// olderCalls returns the calls in the additional arguments of a message, where older versions stored them.
func olderCalls(arguments any) (calls fields) {
	extra, _ := arguments.(fields)
	for _, name := range []string{"tool_calls", "function_call"} {
		if v := extra.get(name); !empty(v) {
			calls = append(calls, field{name, v})
		}
	}
	return calls
}

// graphBody returns the body of a message: its content, or an object if there are calls beside it.
func graphBody(f fields) (body []byte, mediaType string) {
	content := f.get("content")
	text, isText := content.(string)
	switch {
	case len(f) != 1:
		return appendJSON(nil, f), "application/json"
	case isText:
		return []byte(text), "text/plain"
	case content != nil:
		return appendJSON(nil, content), "application/json"
	}
	return []byte{}, "text/plain"
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case fields:
		return len(v) == 0
	}
	return false
}

// parseTime parses a time in the formats of these archives. It returns the zero time for anything
// else.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1 && t.Year() < 9999 {
			return t.UTC().Truncate(time.Millisecond)
		}
	}
	return time.Time{}
}
