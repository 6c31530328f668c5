package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// MaxDepth is the maximum nesting depth of fragment data.
const MaxDepth = 1000

var (
	// ErrTooDeep is returned when data is nested deeper than MaxDepth, for example because it
	// contains itself.
	ErrTooDeep = errors.New("nested too deeply")
	// ErrUnsupported is returned for data of an unsupported type, numbers that are not finite, and
	// missing or duplicate names.
	ErrUnsupported = errors.New("unsupported fragment data")
)

// DataError locates an error in a fragment's data.
type DataError struct {
	// Path starts at the outermost fragment: database.tables[2].name.
	Path string
	// Err wraps ErrTooDeep or ErrUnsupported.
	Err error
}

func (e *DataError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DataError) Unwrap() error { return e.Err }

// Raw is text that renderers write unescaped if their format allows it: Markdown in Markdown,
// elements in XML. In other formats it is ordinary text.
type Raw string

// Object is data with named fields in a chosen order. Names must differ.
type Object []Field

// Field is one entry of an Object.
type Field struct {
	Name  string
	Value any
}

// dataPath is one step of the path to a value: a name, or the index of a list item.
type dataPath struct {
	outer *dataPath
	name  string
	index int
	item  bool
	depth int
}

func (s *dataPath) field(name string) *dataPath {
	return &dataPath{outer: s, name: name, depth: s.level() + 1}
}

func (s *dataPath) at(i int) *dataPath {
	return &dataPath{outer: s, index: i, item: true, depth: s.level() + 1}
}

func (s *dataPath) level() int {
	if s == nil {
		return 0
	}
	return s.depth
}

// fail returns a DataError at s. A long path is cut in the middle.
func (s *dataPath) fail(err error) error {
	const most = 16
	var parts []string
	for at := s; at != nil; at = at.outer {
		switch {
		case at.item:
			parts = append(parts, "["+strconv.Itoa(at.index)+"]")
		case at.outer == nil:
			parts = append(parts, at.name)
		default:
			parts = append(parts, "."+at.name)
		}
	}
	slices.Reverse(parts)
	if len(parts) > most {
		parts = slices.Concat(parts[:most/2], []string{"…"}, parts[len(parts)-most/2:])
	}
	return &DataError{Path: strings.Join(parts, ""), Err: err}
}

// MarshalJSON writes an object with its fields in order.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(rawjson.Quote(f.Name))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o Object) asMap() map[string]any {
	m := make(map[string]any, len(o))
	for _, f := range o {
		m[f.Name] = f.Value
	}
	return m
}
