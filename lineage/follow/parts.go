package follow

import (
	"bytes"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// How a file that is not read by lines is split. A value larger than partSize bytes is split into its members or
// elements if their average size is at least leastPart, down to a depth of partLevels.
const (
	partSize   = 16 << 10
	leastPart  = 64
	partLevels = 8
)

// parts splits a file: into JSON values, whose texts are stored once with those of messages, and the bytes between
// them. A file that is not JSON is split into lines.
func parts(raw []byte, lines bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !lines && rawjson.Valid(raw) {
			at := rawjson.SkipSpace(raw, 0)
			divide(raw, at, rawjson.ValueEnd(raw, at), yield)
			return
		}
		for line := range bytes.Lines(raw) {
			if value := bytes.TrimSpace(line); len(value) <= partSize || !rawjson.Valid(value) {
				if !yield(line) {
					return
				}
			} else if at := bytes.IndexByte(line, value[0]); !divide(line, at, at+len(value), yield) {
				return
			}
		}
	}
}

// divide yields raw in parts. Large members of the value from from to to, at any depth, are parts of their own.
func divide(raw []byte, from, to int, yield func([]byte) bool) bool {
	done := 0
	var visit func(from, to, level int) bool
	visit = func(from, to, level int) bool {
		v := raw[from:to]
		var inner [][2]int
		switch {
		case len(v) <= partSize || level == partLevels:
		case v[0] == '{':
			for m := range rawjson.Members(v) {
				inner = append(inner, [2]int{from + m.At, from + m.At + len(m.Value)})
			}
		case v[0] == '[':
			for at, e := range rawjson.ElementsAt(v) {
				inner = append(inner, [2]int{from + at, from + at + len(e)})
			}
		}
		if len(inner) > 0 && len(v)/len(inner) >= leastPart {
			for _, extent := range inner {
				if !visit(extent[0], extent[1], level+1) {
					return false
				}
			}
			return true
		}
		if from > done && !yield(raw[done:from]) {
			return false
		}
		done = to
		return yield(v)
	}
	return visit(from, to, 0) && (done == len(raw) || yield(raw[done:]))
}

// rowParts splits a row into parts: its JSON cells, which are stored once with the texts of messages and are erased
// with them, and the bytes between them. Only the last part ends with a newline.
func rowParts(line []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		done := 0
		for m := range rawjson.Members(line) {
			if m.Key != "row" {
				continue
			}
			for cell := range rawjson.Members(m.Value) {
				value, offset := jsonOf(cell.Value)
				if value == nil {
					continue
				}
				at := m.At + cell.At + offset
				if !yield(line[done:at]) || !divide(value, 0, len(value), yield) {
					return
				}
				done = at + len(value)
			}
		}
		yield(line[done:])
	}
}

// jsonOf returns the object or array in a cell and its offset there, nil if there is none. A cell is a value, or an object whose
// only key begins with $ and says what the value is.
func jsonOf(cell []byte) (value []byte, offset int) {
	value = cell
	for first := range rawjson.Members(cell) {
		switch {
		case first.Key == "$json": // bytes that are JSON
			value, offset = first.Value, first.At
		case strings.HasPrefix(first.Key, "$"):
			value = nil
		}
		break
	}
	if !rawjson.IsObject(value) && !rawjson.IsArray(value) {
		return nil, 0
	}
	return value, offset
}
