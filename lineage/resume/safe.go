package resume

import (
	"bytes"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// grants reports whether a member of a record may give permissions: a stored session must never switch a safety off.
func grants(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"permission", "approval", "approve", "sandbox", "bypass", "trust", "yolo", "writable", "workspace_root", "workspaceroot", "allowed", "autoaccept"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// maxLevels is how deep a record of an agent is nested. Anything below is left out, which also bounds the time that it takes.
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

// replaced returns a value with each of its values ungranted.
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

// earlier returns a function that reports whether a member with a key is followed by another one: no two stay.
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

// rename sets a text if the object has it as another one.
func rename(raw []byte, key, from, to string) []byte {
	if from != "" && rawjson.Str(rawjson.Last(raw, key)) == from {
		return setText(raw, key, to)
	}
	return raw
}

func text(raw []byte, key string) string { return rawjson.Str(rawjson.Last(raw, key)) }
