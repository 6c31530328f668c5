package archive

import (
	"bytes"
	"slices"
)

// object returns the first object of the input, as far as it goes: the first in an
// outer array, or the one at the top.
func (h Head) object() []byte {
	b := bytes.TrimPrefix(h.Bytes, byteOrderMark)
	i := skipSpace(b, 0)
	if i < len(b) && b[i] == '[' {
		i = skipSpace(b, i+1)
	}
	if i >= len(b) || b[i] != '{' {
		return nil
	}
	return b[i:]
}

// has reports whether an object, as far as it goes, has all of the keys.
func has(raw []byte, keys ...string) bool {
	found := make([]string, 0, 16)
	for m := range members(raw) {
		if slices.Contains(keys, m.Key) && !slices.Contains(found, m.Key) {
			found = append(found, m.Key)
		}
	}
	return len(found) == len(keys)
}

// lines returns the first lines of the input, the last of them as far as it goes.
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
