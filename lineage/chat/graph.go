package chat

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Graph is everything in a chat, for drawing.
type Graph struct {
	ChatID string `json:"chatId"`
	// Nodes and Branches are oldest first, and so are Checkpoints.
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

// previewLength is how many characters a preview has before it is cut.
const previewLength = 50

// Preview returns the start of what a message says: of its text parts, set apart by white space, or
// of the message itself if it is a string. A message of another format is shown as it reads, and
// JSON that is none as it is.
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
	var message struct {
		Parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"parts"`
	}
	if json.Unmarshal(data, &message) == nil && message.Parts != nil {
		var text string
		for _, p := range message.Parts {
			if len(text) > utf8.UTFMax*(previewLength+1) {
				break
			}
			if p.Type != "text" || p.Text == "" {
				continue
			}
			if text != "" && text == strings.TrimRightFunc(text, unicode.IsSpace) && p.Text == strings.TrimLeftFunc(p.Text, unicode.IsSpace) {
				text += " "
			}
			text += p.Text
		}
		return text
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	if !json.Valid(data) {
		return ""
	}
	_, line := transcript.Line(&transcript.Message{Type: content.TypeJSON, Body: data})
	return line
}
