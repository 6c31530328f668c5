package form

import (
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Values that no rule knows are quiet or say something. Quiet are numbers, literals, names of
// kinds, ids and times. Whatever says something is content, so that it can be erased.

// Sizes up to which a string is an id or a time.
const (
	mostID   = 255
	mostTime = 64
)

// quietEnds are the ends of the keys of ids and times, in lower case.
var (
	idEnds   = []string{"uuid", "hash", "digest", "signature", "fingerprint", "etag", "cursor"}
	timeEnds = []string{"time", "timestamp", "date", "_at"}
)

// isQuiet reports whether a string says nothing: it is empty, an id or a time by its key, or the name
// of a kind.
func isQuiet(key string, quoted []byte) bool {
	switch text := quoted[1 : len(quoted)-1]; {
	case len(text) == 0, key != "name" && namesKind[key] && isPlain(quoted):
		return true
	case namesID(key):
		return len(text) <= mostID && isToken(text)
	case namesTime(key):
		return len(text) <= mostTime && isTime(text)
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

// timeWords are the words in times.
var timeWords = setOf("t", "z", "utc", "gmt", "am", "pm", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
	"january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
	"mon", "tue", "wed", "thu", "fri", "sat", "sun", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

// isTime reports whether a text has nothing but digits, the marks between them and the words of times.
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

// isToken reports whether a text is of visible ASCII without white space, as ids are.
func isToken(text []byte) bool {
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Says reports whether bytes, which are JSON or not, say something. A large value does.
func Says(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	if len(raw) >= longValue || rawjson.Check(raw) != nil {
		return true
	}
	at := rawjson.SkipSpace(raw, 0)
	return saysAside("", raw[at:rawjson.ValueEnd(raw, at)], 0)
}

// saysAside is Says for a value under a key, so deep in a value.
func saysAside(key string, raw []byte, depth int) bool {
	switch {
	case len(raw) == 0:
		return false
	case raw[0] == '"':
		return !isQuiet(key, raw)
	case raw[0] != '{' && raw[0] != '[':
		return false
	case len(raw) >= longValue || depth == mostDepth:
		return true
	case raw[0] == '[':
		for e := range rawjson.Elements(raw) {
			if saysAside(key, e, depth+1) {
				return true
			}
		}
		return false
	}
	for m := range rawjson.Members(raw) {
		if !isPlain([]byte(`"`+m.Key+`"`)) || saysAside(m.Key, m.Value, depth+1) {
			return true
		}
	}
	return false
}
