package rawjson

import (
	"bytes"
	"encoding/json"
)

// Quote returns text as a JSON string with the fewest escapes. Each byte that is not valid
// UTF-8 becomes an escaped U+FFFD.
func Quote(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Last returns the last value of a key in an object, nil if there is none. Of duplicate keys,
// JSON readers use the last.
func Last(raw []byte, key string) []byte {
	var found []byte
	for m := range Members(raw) {
		if m.Key == key {
			found = m.Value
		}
	}
	return found
}

// Set returns an object with a value under a key, otherwise unchanged. It replaces the value
// of the last such member, or appends one. quotedKey is the key in its JSON quotes.
func Set(raw, quotedKey, value []byte) []byte {
	key := KeyText(quotedKey)
	at, length, end := -1, 0, -1
	for m := range Members(raw) {
		if m.Key == key {
			at, length = m.At, len(m.Value)
		}
		end = m.At + len(m.Value)
	}
	switch {
	case at >= 0:
		return concat(raw[:at], value, raw[at+length:])
	case end < 0:
		open := bytes.IndexByte(raw, '{') + 1
		return concat(raw[:open], quotedKey, []byte(":"), value, raw[open:])
	}
	return concat(raw[:end], []byte(","), quotedKey, []byte(":"), value, raw[end:])
}

// Remove returns an object without the members of a key, otherwise unchanged. It is raw itself
// if there are none.
func Remove(raw []byte, key string) []byte {
	return RemoveFunc(raw, func(k string) bool { return k == key })
}

// RemoveFunc is Remove for all keys that gone returns true for.
func RemoveFunc(raw []byte, gone func(key string) bool) []byte {
	var out []byte
	end, kept, removed := 0, false, false // end is the end of the previous member
	for m := range Members(raw) {
		if end == 0 {
			out = append(out, raw[:m.KeyAt]...)
		}
		if gone(m.Key) {
			removed = true
		} else {
			if kept {
				out = append(out, raw[end:m.KeyAt]...) // the comma
			}
			out = append(out, raw[m.KeyAt:m.At+len(m.Value)]...)
			kept = true
		}
		end = m.At + len(m.Value)
	}
	if !removed {
		return raw
	}
	return append(out, raw[end:]...)
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
