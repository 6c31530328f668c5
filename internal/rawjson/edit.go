package rawjson

import (
	"bytes"
	"encoding/json"
)

// Quote returns text as a string, in which only what must be is escaped. Each byte that is not
// Unicode becomes an escaped U+FFFD.
func Quote(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Last returns the last member of an object with a key, nil if there is none. Of members that
// share a key, readers of JSON take the last.
func Last(raw []byte, key string) []byte {
	var found []byte
	for m := range Members(raw) {
		if m.Key == key {
			found = m.Value
		}
	}
	return found
}

// Set returns an object with a value under a key, everything else as it was: in the place of
// the last member of that key, or behind all others. The key is given as it is quoted.
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

// Remove returns an object without the members of a key, everything else as it was. It is raw
// itself if there are none.
func Remove(raw []byte, key string) []byte {
	return RemoveFunc(raw, func(k string) bool { return k == key })
}

// RemoveFunc is Remove for the members whose keys are gone.
func RemoveFunc(raw []byte, gone func(key string) bool) []byte {
	var out []byte
	end, kept, removed := 0, false, false // end is where the member before ends
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
