package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Object builds an object from members. The zero value has none.
type Object struct{ b []byte }

// Add adds a member of another object.
func (o *Object) Add(m Member) { o.quoted(m.Quoted, m.Value) }

// Set adds a member with a JSON value.
func (o *Object) Set(key string, value []byte) { o.quoted(Quote(key), value) }

// SetText adds a member with a text, unless it is empty.
func (o *Object) SetText(key, text string) {
	if text != "" {
		o.Set(key, Quote(text))
	}
}

// Join adds the members of another builder.
func (o *Object) Join(more *Object) {
	switch {
	case len(more.b) == 0:
	case len(o.b) == 0:
		o.b = slices.Clone(more.b)
	default:
		o.b = append(append(o.b, ','), more.b[1:]...)
	}
}

func (o *Object) quoted(key, value []byte) {
	if o.b == nil {
		o.b = make([]byte, 0, len(key)+len(value)+64)
	}
	lead := byte(',')
	if len(o.b) == 0 {
		lead = '{'
	}
	o.b = append(append(append(append(o.b, lead), key...), ':'), value...)
}

// Bytes returns the object, nil if it has no members. Bytes that are not UTF-8 become U+FFFD. Nothing must be added after it.
func (o *Object) Bytes() []byte {
	if len(o.b) == 0 {
		return nil
	}
	return bytes.ToValidUTF8(append(o.b, '}'), []byte("\uFFFD"))
}

// Has reports whether an object, possibly truncated, has all of the keys.
func Has(raw []byte, keys ...string) bool {
	found := make([]string, 0, 16)
	for m := range Members(raw) {
		if slices.Contains(keys, m.Key) && !slices.Contains(found, m.Key) {
			found = append(found, m.Key)
		}
	}
	return len(found) == len(keys)
}

// First returns the first element of an array, nil if there is none.
func First(raw []byte) []byte {
	if !IsArray(raw) {
		return nil
	}
	for e := range Elements(raw) {
		return e
	}
	return nil
}

// Compact returns valid JSON without whitespace between tokens, and other text as it is. Strings and numbers are unchanged.
func Compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw)
	}
	return b.Bytes()
}
