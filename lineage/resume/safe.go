package resume

import (
	"bytes"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// grants reports whether a member of a record may give permissions. A stored session must never switch off a safety
// measure.
func grants(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"permission", "approval", "approve", "sandbox", "bypass", "trust", "yolo", "writable", "workspace_root", "workspaceroot", "allowed", "autoaccept"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// maxLevels limits the nesting of an agent's records. Anything deeper is left out, which also limits the time needed.
const maxLevels = 32

// ungranted returns a record without members that may give permissions, at any depth.
func ungranted(raw []byte) []byte { return ungrantedAt(raw, 0) }

func ungrantedAt(raw []byte, level int) []byte {
	raw = bytes.TrimSpace(raw)
	object := rawjson.IsObject(raw)
	switch {
	case !object && !rawjson.IsArray(raw):
		return raw
	case level == maxLevels:
		return []byte("null")
	case !object:
		return replaced(raw, level, rawjson.ElementsAt(raw))
	}
	raw = rawjson.RemoveFunc(raw, grants)
	return replaced(raw, level, func(yield func(at int, value []byte) bool) {
		for m := range rawjson.Members(raw) {
			if !yield(m.At, m.Value) {
				return
			}
		}
	})
}

// replaced returns a value in which each inner value is replaced by its ungranted form.
func replaced(raw []byte, level int, values iter.Seq2[int, []byte]) []byte {
	var out []byte
	end := 0
	for at, value := range values {
		safe := ungrantedAt(value, level+1)
		if bytes.Equal(safe, value) {
			continue
		}
		out = append(append(out, raw[end:at]...), safe...)
		end = at + len(value)
	}
	if end == 0 {
		return raw
	}
	return append(out, raw[end:]...)
}

// set returns an object with a value under a key.
func set(raw []byte, key string, value []byte) []byte {
	return rawjson.Set(rawjson.RemoveFunc(raw, earlier(raw, key)), rawjson.Quote(key), value)
}

// earlier returns a function that reports whether a later member has the same key, so that only the last one is kept.
// It is called with the key of each member in order.
func earlier(raw []byte, key string) func(string) bool {
	n := 0
	for m := range rawjson.Members(raw) {
		if m.Key == key {
			n++
		}
	}
	return func(k string) bool {
		if k == key {
			n--
		}
		return k == key && n > 0
	}
}

func setText(raw []byte, key, text string) []byte { return set(raw, key, rawjson.Quote(text)) }

// rename replaces a text of an object if it has the given value.
func rename(raw []byte, key, from, to string) []byte {
	if from != "" && rawjson.Str(rawjson.Last(raw, key)) == from {
		return setText(raw, key, to)
	}
	return raw
}

func text(raw []byte, key string) string { return rawjson.Str(rawjson.Last(raw, key)) }
