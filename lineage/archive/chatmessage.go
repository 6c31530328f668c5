package archive

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/message"
)

// saidInChat lists the content members of a chat endpoint's message.
var saidInChat = []string{"content", "refusal", "reasoning_content", "tool_calls", "function_call", "audio", "parts"}

// chatNode reads a message {role, content, …} of the form that chat endpoints take, or an item of
// the Responses API, which has a type in place of a role.
func chatNode(raw []byte, at Position) (Node, error) {
	n := Node{At: at}
	if !rawjson.IsObject(raw) {
		return n, malformed("message is not an object")
	}
	n.Give(raw)
	kind := ""
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "type":
			kind = rawjson.Str(m.Value)
		case "role":
			n.Role = rawjson.Str(m.Value)
		case "name":
			n.Name = rawjson.Str(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "id":
			n.ID = rawjson.Str(m.Value)
		case "timestamp", "created_at", "createdAt":
			n.Created = parseTime(m.Value)
		}
	}
	if n.Role == "" {
		if n.Role = message.ItemRole(kind); n.Role == "" {
			return n, malformed("message without a role")
		}
		n.Name = "" // that of a tool
	}
	return n, nil
}

// compactJSON returns valid JSON without whitespace between tokens. Strings and numbers are
// unchanged.
func compactJSON(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw)
	}
	return b.Bytes()
}

// isChatMessage reports whether a value looks like a message of a chat endpoint.
func isChatMessage(raw []byte) bool {
	if !rawjson.IsObject(raw) {
		return false
	}
	role, said := false, false
	for m := range rawjson.Members(raw) {
		switch {
		case m.Key == "role":
			role = rawjson.IsString(m.Value)
		case slices.Contains(saidInChat, m.Key):
			said = true
		}
		if role && said {
			return true
		}
	}
	return false
}

// firstElement returns the first element of an array, nil if there is none.
func firstElement(raw []byte) []byte {
	if !rawjson.IsArray(raw) {
		return nil
	}
	for e := range rawjson.Elements(raw) {
		return e
	}
	return nil
}

// withoutRepeats clears ids that an earlier node has, because ids must be unique in a conversation.
func withoutRepeats(nodes []Node) {
	seen := make(map[string]bool)
	for i := range nodes {
		if id := nodes[i].ID; id != "" && seen[id] {
			nodes[i].ID = ""
		} else {
			seen[id] = true
		}
	}
}

// scalar returns a text, number or boolean as text, or "" for other values.
func scalar(raw []byte) string {
	switch {
	case rawjson.IsString(raw):
		return rawjson.Str(raw)
	case rawjson.IsObject(raw) || rawjson.IsArray(raw) || rawjson.IsNull(raw) || len(raw) > 64:
		return ""
	}
	return string(raw)
}

// titled joins words to a title, without empty ones.
func titled(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ")
}

// inside returns the position of the i-th element of a kind in an item.
func (p Position) inside(kind string, i int) Position {
	p.Inside = kind + " " + strconv.Itoa(i)
	return p
}

// headObject returns the first object of an input, possibly truncated; nil if the input does not
// begin with an object or lists of objects.
func headObject(h Head) []byte {
	b := bytes.TrimLeft(bytes.TrimPrefix(h.Bytes, byteOrderMark), " \t\r\n[")
	if !rawjson.IsObject(b) {
		return nil
	}
	return b
}
