package lists

import (
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// saidInChat lists the content members of a chat endpoint's message.
var saidInChat = []string{"content", "refusal", "reasoning_content", "tool_calls", "function_call", "audio", "parts"}

// chatNode reads a message {role, content, …} of a chat endpoint, or an item of the Responses API, which has a type
// instead of a role.
func chatNode(raw []byte, at archive.Position) (archive.Node, error) {
	n := archive.Node{At: at}
	if !rawjson.IsObject(raw) {
		return n, archive.Malformed("message is not an object")
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
			n.Created = archive.ParseTime(m.Value)
		}
	}
	if n.Role == "" {
		if n.Role = message.ItemRole(kind); n.Role == "" {
			return n, archive.Malformed("message without a role")
		}
		n.Name = "" // that of a tool
	}
	return n, nil
}

// isChatMessage reports whether a value looks like a message of a chat endpoint.
func isChatMessage(raw []byte) bool {
	if !rawjson.IsObject(raw) {
		return false
	}
	role, hasText := false, false
	for m := range rawjson.Members(raw) {
		switch {
		case m.Key == "role":
			role = rawjson.IsString(m.Value)
		case slices.Contains(saidInChat, m.Key):
			hasText = true
		}
		if role && hasText {
			return true
		}
	}
	return false
}

// idSet has the ids of nodes, which must be unique in a conversation.
type idSet map[string]bool

// add adds the id of a node, or clears it if an earlier node has it.
func (s idSet) add(n *archive.Node) (repeated bool) {
	if repeated = n.ID != "" && s[n.ID]; repeated {
		n.ID = ""
	} else {
		s[n.ID] = true
	}
	return repeated
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
