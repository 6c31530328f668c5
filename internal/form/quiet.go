package form

import (
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Values without a rule are quiet or content. Numbers, literals, names of kinds, ids and
// times are quiet. Everything else is content, so that it can be erased.

// Maximum sizes of ids and times.
const (
	maxID   = 255
	maxTime = 64
)

// Suffixes of the keys of ids and times, in lower case.
var (
	idEnds   = []string{"uuid", "hash", "digest", "signature", "fingerprint", "etag", "cursor"}
	timeEnds = []string{"time", "timestamp", "date", "_at", "$numberlong"} // the last one of MongoDB
)

// IsQuiet reports whether a string has no content: it is empty, the name of a kind, or an id
// or a time according to its key.
func IsQuiet(key string, quoted []byte) bool {
	switch text := quoted[1 : len(quoted)-1]; {
	case IsKind(key, quoted):
		return true
	case namesID(key):
		return len(text) <= maxID && isToken(text)
	case namesTime(key):
		return len(text) <= maxTime && isTime(text)
	}
	return false
}

// namesID reports whether a key is that of ids: "id", "callId", "parent_id", "messageUUID".
func namesID(key string) bool {
	for _, end := range [...]string{"Id", "ID", "_id", "Ids", "IDs", "_ids", "-id"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	lower := strings.ToLower(key)
	return lower == "id" || lower == "ids" || hasEnd(lower, idEnds)
}

func namesTime(key string) bool {
	return strings.HasSuffix(key, "At") || hasEnd(strings.ToLower(key), timeEnds)
}

func hasEnd(s string, ends []string) bool {
	for _, end := range ends {
		if strings.HasSuffix(s, end) {
			return true
		}
	}
	return false
}

// timeWords are the words that may occur in times.
var timeWords = setOf("t", "z", "utc", "gmt", "am", "pm", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
	"january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
	"mon", "tue", "wed", "thu", "fri", "sat", "sun", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

// isTime reports whether a text consists of digits, separators and timeWords.
func isTime(text []byte) bool {
	digits := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		end := i
		for end < len(text) && ('a' <= text[end]|0x20 && text[end]|0x20 <= 'z') {
			end++
		}
		switch {
		case end > i:
			if !timeWords[strings.ToLower(string(text[i:end]))] {
				return false
			}
			i = end - 1
		case '0' <= c && c <= '9':
			digits = true
		case strings.IndexByte(" :.,+-/", c) < 0:
			return false
		}
	}
	return digits
}

// isToken reports whether a text is visible ASCII without white space.
func isToken(text []byte) bool {
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Says reports whether bytes, JSON or not, have content. A large value has.
func Says(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if len(raw) >= longValue || rawjson.Check(raw) != nil {
		return true
	}
	at := rawjson.SkipSpace(raw, 0)
	return hasContent("", raw[at:rawjson.ValueEnd(raw, at)], 0)
}

// hasContent is like Says, for a value under a key, at a depth.
func hasContent(key string, raw []byte, depth int) bool {
	switch {
	case len(raw) == 0:
		return false
	case raw[0] == '"':
		return !IsQuiet(key, raw)
	case raw[0] != '{' && raw[0] != '[':
		return false
	case len(raw) >= longValue || depth == maxDepth:
		return true
	case raw[0] == '[':
		for e := range rawjson.Elements(raw) {
			if hasContent(key, e, depth+1) {
				return true
			}
		}
		return false
	}
	for m := range rawjson.Members(raw) {
		if !isPlain([]byte(`"`+m.Key+`"`)) || hasContent(m.Key, m.Value, depth+1) {
			return true
		}
	}
	return false
}

// IsKind reports whether a JSON string under a key is empty or the name of a kind.
func IsKind(key string, quoted []byte) bool {
	return len(quoted) == 2 || key != "name" && kindKeys[key] && isPlain(quoted)
}

// IsPlainKey reports whether a key of an object, in its quotes, has no content.
func IsPlainKey(quoted []byte) bool { return isPlain(quoted) }
