// Package projected has what chats, imports and the projector share about a projection: its mark, the form of values
// in its rows, and the message of a span.
package projected

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

// Clean returns a text in which U+FFFD replaces invalid UTF-8.
func Clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// CleanOptional is like Clean, for a text that may be absent; null for nil.
func CleanOptional(s *string) any {
	if s == nil {
		return nil
	}
	return Clean(*s)
}

// BytesText is like Clean, for JSON that a text column keeps byte for byte. It returns null for nil.
func BytesText(b []byte) any {
	if b == nil {
		return nil
	}
	return Clean(string(b))
}

// CleanJSON is like Clean, for JSON in a JSON column.
func CleanJSON(b json.RawMessage) json.RawMessage {
	if b == nil || utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

// SameJSON reports whether documents have the same value.
func SameJSON(a, b json.RawMessage) bool { return chat.Message{Data: a}.Same(chat.Message{Data: b}) }

// RefText returns the id of a span, null for the zero ref.
func RefText(at structure.SpanRef) any {
	if at.IsZero() {
		return nil
	}
	return at.String()
}

// IDText returns an id, null for the zero id.
func IDText[K any](id structure.ID[K]) any {
	if id.IsZero() {
		return nil
	}
	return id.String()
}

// HashText returns the id of content, null for the zero id.
func HashText(id content.ID) any {
	if id.IsZero() {
		return nil
	}
	return id.String()
}

// Boolean returns 1 for true and 0 for false.
func Boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
