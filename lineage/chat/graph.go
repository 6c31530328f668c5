package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Graph is everything in a chat, for drawing.
type Graph struct {
	ChatID string `json:"chatId"`
	// Nodes, Branches and Checkpoints are in the order of their creation, oldest first.
	Nodes       []GraphNode       `json:"nodes"`
	Branches    []GraphBranch     `json:"branches"`
	Checkpoints []GraphCheckpoint `json:"checkpoints"`
}

// GraphNode is a message, shortened.
type GraphNode struct {
	ID        string `json:"id"`
	ParentID  Ref    `json:"parentId"`
	Role      string `json:"role"`
	Content   string `json:"content"`
	CreatedAt int64  `json:"createdAt"`
}

// GraphBranch is a branch.
type GraphBranch struct {
	Name          string `json:"name"`
	HeadMessageID Ref    `json:"headMessageId"`
	IsActive      bool   `json:"isActive"`
}

// GraphCheckpoint is a checkpoint.
type GraphCheckpoint struct {
	Name      string `json:"name"`
	MessageID string `json:"messageId"`
}

// Node returns the message as a node.
func (m Message) Node() GraphNode {
	return GraphNode{ID: m.ID, ParentID: m.ParentID, Role: m.Name, Content: Preview(m.Data), CreatedAt: m.CreatedAt}
}

// previewLength is the number of characters at which a preview is cut.
const previewLength = 50

// Preview returns the start of a message's text: of its text parts, separated by white space, or of the message
// itself if it is a string. Any other message has its line of package transcript, and invalid JSON has none.
//
// The rule for text parts is not that of package transcript, which also has reasoning, calls and files, and single spaces: it is
// the documented content of a node in the chat stores of other languages, whose programs compare it.
func Preview(data json.RawMessage) string {
	text := previewText(data)
	n := 0
	for i := range text {
		if n == previewLength {
			return text[:i] + "..."
		}
		n++
	}
	return text
}

func previewText(data json.RawMessage) string {
	if !rawjson.Valid(data) {
		return ""
	}
	data = data[rawjson.SkipSpace(data, 0):]
	if text, ok := rawjson.Text(bytes.TrimRight(data, " \t\r\n")); ok {
		return text
	}
	if text, ok := textOfParts(rawjson.Last(data, "parts")); ok {
		return text
	}
	_, line := transcript.Line(&transcript.Message{Type: content.TypeJSON, Body: data})
	return line
}

// textOfParts returns the start of the text parts in a list of parts. It returns false if the JSON is not a list of
// parts.
func textOfParts(parts []byte) (text string, ok bool) {
	if !rawjson.IsArray(parts) {
		return "", false
	}
	for p := range rawjson.Elements(parts) {
		var kind, partText []byte
		for m := range rawjson.Members(p) {
			switch m.Key {
			case "type":
				kind = m.Value
			case "text":
				partText = m.Value
			}
		}
		if !rawjson.IsNull(p) && !rawjson.IsObject(p) || !isTextOrNone(kind) || !isTextOrNone(partText) {
			return "", false
		}
		if len(text) > utf8.UTFMax*(previewLength+1) || rawjson.Str(kind) != "text" {
			continue
		}
		next := rawjson.Str(partText)
		if text != "" && next != "" && text == strings.TrimRightFunc(text, unicode.IsSpace) && next == strings.TrimLeftFunc(next, unicode.IsSpace) {
			text += " "
		}
		text += next
	}
	return text, true
}

func isTextOrNone(raw []byte) bool { return rawjson.IsNull(raw) || rawjson.IsString(raw) }
