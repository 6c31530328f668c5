package archive

import (
	"bytes"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// object returns the first object of the input, possibly truncated: at the top or in an outer
// array.
func (h Head) object() []byte {
	b := bytes.TrimPrefix(h.Bytes, byteOrderMark)
	i := rawjson.SkipSpace(b, 0)
	if i < len(b) && b[i] == '[' {
		i = rawjson.SkipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '{' {
		return nil
	}
	return b[i:]
}

// has reports whether an object, possibly truncated, has all of the keys.
func has(raw []byte, keys ...string) bool {
	found := make([]string, 0, 16)
	for m := range rawjson.Members(raw) {
		if slices.Contains(keys, m.Key) && !slices.Contains(found, m.Key) {
			found = append(found, m.Key)
		}
	}
	return len(found) == len(keys)
}

// lines returns the first lines of the input; the last may be truncated.
func (h Head) lines(most int) [][]byte {
	var lines [][]byte
	for line := range bytes.Lines(bytes.TrimPrefix(h.Bytes, byteOrderMark)) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
		if len(lines) >= most {
			break
		}
	}
	return lines
}

// rest returns the head after its first item: an element of an outer array, a value, or a line that
// is not JSON. ok is false if nothing follows.
func (h Head) rest() (Head, bool) {
	b := bytes.TrimPrefix(h.Bytes, byteOrderMark)
	i := rawjson.SkipSpace(b, 0)
	array := i < len(b) && b[i] == '['
	if array {
		i = rawjson.SkipSpace(b, i+1)
	}
	if i >= len(b) {
		return Head{}, false
	}
	end := rawjson.ValueEnd(b, i)
	if !array && !rawjson.IsObject(b[i:]) {
		end = i + bytes.IndexByte(b[i:], '\n')
		if end < i || bytes.IndexByte(b[i:end], 0) >= 0 {
			return Head{}, false
		}
	}
	if i = rawjson.SkipSpace(b, end); array && i < len(b) && b[i] == ',' {
		i = rawjson.SkipSpace(b, i+1)
	}
	if end == len(b) || i == len(b) || i == 0 {
		return Head{}, false
	}
	rest := b[i:]
	if array {
		rest = append([]byte{'['}, rest...)
	}
	return Head{Name: h.Name, Bytes: rest}, true
}
