package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// step is one step of the path to a value: a name, or the index of a list item.
type step struct {
	outer *step
	name  string
	index int
	item  bool
	depth int
}

func (s *step) field(name string) *step { return &step{outer: s, name: name, depth: s.level() + 1} }

func (s *step) at(i int) *step { return &step{outer: s, index: i, item: true, depth: s.level() + 1} }

func (s *step) level() int {
	if s == nil {
		return 0
	}
	return s.depth
}

// fail returns a DataError at s. A long path is cut in the middle.
func (s *step) fail(err error) error {
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

// fragmentNode returns the tree of f, or nil if f is not rendered: if it is a message or has no
// value.
func fragmentNode(f Fragment, outer *step) (*node, error) {
	at := outer.field(f.Name)
	if f.Name == "" {
		return nil, at.fail(fmt.Errorf("%w: fragment without a name", ErrUnsupported))
	}
	if IsMessage(f) || f.lazy != nil {
		return nil, nil
	}
	n, err := dataNode(f.Data, at)
	if n != nil {
		n.setName(f.Name)
	}
	return n, err
}

// dataNode returns the tree of data, or nil if it has no value.
func dataNode(data any, at *step) (*node, error) {
	if at.level() > MaxDepth {
		return nil, at.fail(ErrTooDeep)
	}
	switch d := data.(type) {
	case nil:
		return nil, nil
	case string:
		return textOf(d, false), nil
	case Raw:
		return textOf(string(d), true), nil
	case bool:
		return &node{kind: literalNode, text: strconv.FormatBool(d)}, nil
	case Fragment:
		return listNode([]Fragment{d}, at)
	case Object:
		return objectNode(d, at)
	case map[string]any:
		if f, ok := fragmentOf(d); ok {
			return listNode([]Fragment{f}, at)
		}
		return objectNode(sortedFields(d), at)
	case map[string]string:
		return objectNode(sortedFields(d), at)
	case []any:
		return listNode(d, at)
	case []string:
		return listNode(d, at)
	case []Fragment:
		return listNode(d, at)
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64, json.Number:
		number, ok := formatNumber(d)
		if !ok {
			return nil, at.fail(fmt.Errorf("%w: number %.40q", ErrUnsupported, fmt.Sprint(d)))
		}
		return &node{kind: numberNode, text: number}, nil
	}
	return typedNode(data, at)
}

func textOf(text string, raw bool) *node {
	return &node{kind: textNode, text: strings.ToValidUTF8(text, "\uFFFD"), raw: raw}
}

func sortedFields[V any](m map[string]V) Object {
	fields := make(Object, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fields = append(fields, Field{name, m[name]})
	}
	return fields
}

func objectNode(fields Object, at *step) (*node, error) {
	n := &node{kind: objectKind}
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		in := at.field(f.Name)
		if seen[f.Name] {
			return nil, in.fail(fmt.Errorf("%w: duplicate name", ErrUnsupported))
		}
		seen[f.Name] = true
		child, err := dataNode(f.Value, in)
		if err != nil {
			return nil, err
		}
		if child != nil {
			child.setName(f.Name)
			n.children = append(n.children, child)
		}
	}
	return n, nil
}

// listNode returns the tree of a list. Fragments in it keep their names; a list of fragments only
// is an object in which names may repeat.
func listNode[T any](items []T, at *step) (*node, error) {
	n := &node{kind: objectKind}
	for i, item := range items {
		var child *node
		var err error
		f, ok := any(item).(Fragment)
		if m, isMap := any(item).(map[string]any); isMap {
			f, ok = fragmentOf(m)
		}
		if ok {
			child, err = fragmentNode(f, at)
		} else {
			n.kind = listKind
			child, err = dataNode(item, at.at(i))
		}
		if err != nil {
			return nil, err
		}
		if child != nil {
			n.children = append(n.children, child)
		}
	}
	if len(n.children) == 0 {
		n.kind = listKind
	}
	return n, nil
}
