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

// saidInChat lists the members of a chat endpoint's message that say what it says.
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

// compactJSON returns valid JSON without white space between its tokens. Strings
// and numbers stay as they are.
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

// firstElement returns the first element of an array, nil if it has none.
func firstElement(raw []byte) []byte {
	if !rawjson.IsArray(raw) {
		return nil
	}
	for e := range rawjson.Elements(raw) {
		return e
	}
	return nil
}

// withoutRepeats clears the ids of nodes that a node before them has: histories
// repeat messages, and an id finds one.
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

// scalar returns a text, number or truth value as text; the empty string for
// anything else.
func scalar(raw []byte) string {
	switch {
	case rawjson.IsString(raw):
		return rawjson.Str(raw)
	case rawjson.IsObject(raw) || rawjson.IsArray(raw) || rawjson.IsNull(raw) || len(raw) > 64:
		return ""
	}
	return string(raw)
}

// titled joins the words that name a conversation.
func titled(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ")
}

// inside returns the position of the i-th thing of a kind in an item.
func (p Position) inside(kind string, i int) Position {
	p.Inside = kind + " " + strconv.Itoa(i)
	return p
}

// headObject returns the first object in what begins an input, cut off where that
// ends; nil if it begins with anything but objects and lists of them.
func headObject(h Head) []byte {
	b := bytes.TrimLeft(bytes.TrimPrefix(h.Bytes, byteOrderMark), " \t\r\n[")
	if !rawjson.IsObject(b) {
		return nil
	}
	return b
}
