package export

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// said returns the messages in an entry: one, or several if its body is a list.
func said(e *lineage.Entry, body []byte) []message.Message {
	switch {
	case e.Erased:
		return textMessage(e.Role, erased)
	case e.Kind == lineage.Asset && strings.HasPrefix(e.Type, "image/"):
		url := "data:" + e.Type + ";base64," + base64.StdEncoding.EncodeToString(body)
		return []message.Message{{Role: "user", Parts: []message.Part{{Kind: message.FileKind, MediaType: e.Type, URL: url}}}}
	case e.Kind == lineage.Asset:
		return textMessage("user", "["+assetLabel(e)+"]")
	case e.Kind == lineage.Document:
		return textMessage("user", string(body))
	case e.Type != content.TypeJSON:
		return message.Decode(body, content.TypeText, e.Role)
	}
	return message.Decode(body, content.TypeJSON, e.Role)
}

func textMessage(role, text string) []message.Message {
	return []message.Message{{Role: role, Parts: []message.Part{{Kind: message.TextKind, Text: text}}}}
}

func assetLabel(e *lineage.Entry) string {
	return fmt.Sprintf("file %s, %s, %d bytes", e.Filename, e.Type, e.Size)
}

// isQuoted reports whether a body is a JSON string, the stored form of text that is not Unicode.
func isQuoted(body []byte) bool { return rawjson.IsString(body) && json.Valid(body) }

// member returns a member of a JSON object, nil if there is none.
func member(metadata []byte, name string) json.RawMessage {
	if !bytes.Contains(metadata, []byte(name)) {
		return nil // fast path for the usual case
	}
	return rawjson.Last(metadata, name)
}

// compact returns valid JSON in one line, with strings and numbers unchanged.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "null"
	}
	return b.String()
}
