package export

import (
	"bytes"
	"encoding/json"

	"github.com/lineage-store/lineage/internal/rawjson"
)

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
