package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Quote returns text as a JSON string with the fewest escapes. Each byte that is not valid
// UTF-8 becomes an escaped U+FFFD.
func Quote(text string) []byte {
	if isPlain(text) {
		quoted := make([]byte, 0, len(text)+2)
		return append(append(append(quoted, '"'), text...), '"')
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// isPlain reports whether a text is ASCII without anything to escape, as ids, times and most names are.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
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

// RemoveFunc is Remove for all keys that isRemoved returns true for.
func RemoveFunc(raw []byte, isRemoved func(key string) bool) []byte {
	var out []byte
	end, kept, removed := 0, false, false // end is the end of the previous member
	for m := range Members(raw) {
		if end == 0 {
			out = append(out, raw[:m.KeyAt]...)
		}
		if isRemoved(m.Key) {
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

// RemoveDeep is RemoveFunc for the members of all objects in a value, in one pass.
func RemoveDeep(raw []byte, isRemoved func(key string) bool) []byte {
	d := deepRemover{raw: raw, gone: isRemoved}
	if at := SkipSpace(raw, 0); at < len(raw) {
		d.value(at)
	}
	if d.done == 0 {
		return raw
	}
	return append(d.out, raw[d.done:]...)
}

// deepRemover copies a value without what is cut. out is what is left of raw up to done.
type deepRemover struct {
	raw, out []byte
	done     int
	gone     func(key string) bool
}

func (d *deepRemover) cut(from, to int) {
	d.out, d.done = append(d.out, d.raw[d.done:max(from, d.done)]...), to
}

// value copies the value that starts at i, and returns its end.
func (d *deepRemover) value(i int) int {
	switch {
	case i < len(d.raw) && d.raw[i] == '{':
		return d.object(SkipSpace(d.raw, i+1))
	case i < len(d.raw) && d.raw[i] == '[':
		return d.array(SkipSpace(d.raw, i+1))
	}
	return ValueEnd(d.raw, i)
}

// object copies the members from i on. A member goes with the comma before it, or the one after it if no member is kept before.
func (d *deepRemover) object(i int) int {
	kept := 0 // the end of the last member that is kept, 0 for none
	for i < len(d.raw) && d.raw[i] == '"' {
		end := StringEnd(d.raw, i)
		at := SkipSpace(d.raw, SkipSpace(d.raw, end)+1)
		removed := d.gone(KeyText(d.raw[i:end:end]))
		if removed {
			end = ValueEnd(d.raw, at)
		} else {
			end = d.value(at)
		}
		next := SkipSpace(d.raw, end)
		more := next < len(d.raw) && d.raw[next] == ','
		if more {
			next = SkipSpace(d.raw, next+1)
		}
		switch {
		case !removed:
			kept = end
		case kept > 0:
			d.cut(kept, end)
		case more:
			d.cut(i, next)
		default:
			d.cut(i, end)
		}
		if i = next; !more {
			break
		}
	}
	return min(i+1, len(d.raw))
}

// array copies the elements from i on.
func (d *deepRemover) array(i int) int {
	for i < len(d.raw) && d.raw[i] != ']' {
		end := d.value(i)
		if i = SkipSpace(d.raw, end); i >= len(d.raw) || d.raw[i] != ',' {
			break
		}
		i = SkipSpace(d.raw, i+1)
	}
	return min(i+1, len(d.raw))
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
