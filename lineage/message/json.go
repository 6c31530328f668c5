package message

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// quote returns text as a JSON string. Invalid Unicode becomes U+FFFD.
func quote(text string) []byte {
	return rawjson.Quote(strings.ToValidUTF8(text, "\ufffd"))
}

// object builds a JSON object.
type object struct{ b []byte }

func (o *object) raw(key string, value []byte) *object {
	sep := byte(',')
	if len(o.b) == 0 {
		sep = '{'
	}
	o.b = append(append(append(append(o.b, sep), quote(key)...), ':'), value...)
	return o
}

func (o *object) text(key, value string) *object { return o.raw(key, quote(value)) }

// textIf adds a member unless it is empty.
func (o *object) textIf(key, value string) *object {
	if value == "" {
		return o
	}
	return o.text(key, value)
}

func (o *object) bytes() json.RawMessage {
	if len(o.b) == 0 {
		return json.RawMessage("{}")
	}
	return append(o.b, '}')
}

// list returns a JSON array.
func list(elements []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(raws(elements), []byte(","))...), ']')
}

func raws(elements []json.RawMessage) [][]byte {
	out := make([][]byte, len(elements))
	for i := range elements {
		out[i] = elements[i]
	}
	return out
}

// fields are the members of an object by key. Of duplicate keys the last counts.
type fields map[string]json.RawMessage

func fieldsOf(raw []byte) fields {
	f := make(fields)
	for m := range rawjson.Members(raw) {
		f[m.Key] = m.Value
	}
	return f
}

func (f fields) has(key string) bool { return f[key] != nil && !rawjson.IsNull(f[key]) }

func (f fields) text(key string) string { return rawjson.Str(f[key]) }

func (f fields) first(keys ...string) string {
	for _, k := range keys {
		if s := f.text(k); s != "" {
			return s
		}
	}
	return ""
}

// pairs are the members of an object, in order. They serve where an object has few members and most of the searched keys are
// missing, as with numbers of tokens: that is faster than fields.
type pairs []pair

type pair struct {
	key   string
	value []byte
}

func pairsOf(raw []byte) pairs {
	var all pairs
	for m := range rawjson.Members(raw) {
		if all == nil {
			all = make(pairs, 0, 8)
		}
		all = append(all, pair{m.Key, m.Value})
	}
	return all
}

// get returns the value of a member, nil if there is none. Of duplicate keys the last counts.
func (all pairs) get(key string) []byte {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].key == key {
			return all[i].value
		}
	}
	return nil
}

func (all pairs) text(key string) string { return rawjson.Str(all.get(key)) }

// firstText returns the first text under some keys that is not empty.
func (all pairs) firstText(keys ...string) string {
	for _, k := range keys {
		if s := all.text(k); s != "" {
			return s
		}
	}
	return ""
}

// firstRaw returns the first of the members that exists.
func (f fields) firstRaw(keys ...string) json.RawMessage {
	for _, k := range keys {
		if f[k] != nil {
			return f[k]
		}
	}
	return nil
}

// asUnicode returns JSON with invalid Unicode replaced by U+FFFD. Valid JSON is returned unchanged.
func asUnicode(raw []byte) json.RawMessage {
	var dst []byte
	copied := 0
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := rawjson.StringEnd(raw, i)
		text, exact := rawjson.Unquote(raw[i:end])
		if valid := bytes.ToValidUTF8(text, []byte("\ufffd")); !exact || len(valid) != len(text) || !bytes.Equal(valid, text) {
			dst = append(append(dst, raw[copied:i]...), quote(string(valid))...)
			copied = end
		}
		i = end
	}
	if copied == 0 {
		return raw
	}
	return append(dst, raw[copied:]...)
}

func setOf(keys ...string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set
}
