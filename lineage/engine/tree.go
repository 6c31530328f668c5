package engine

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// document returns the object whose children are the fragments to render.
func document(fragments []Fragment) (*node, error) {
	doc := &node{kind: objectKind}
	for _, f := range fragments {
		n, err := fragmentNode(f, nil)
		if err != nil {
			return nil, err
		}
		if n != nil {
			doc.children = append(doc.children, n)
		}
	}
	return doc, nil
}

// fragmentNode returns the tree of f, or nil if f is not rendered: if it is a message or has no
// value.
func fragmentNode(f Fragment, outer *dataPath) (*node, error) {
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
func dataNode(data any, at *dataPath) (*node, error) {
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

func objectNode(fields Object, at *dataPath) (*node, error) {
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
func listNode[T any](items []T, at *dataPath) (*node, error) {
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

// typedNode returns the tree of data of other types.
func typedNode(data any, at *dataPath) (*node, error) {
	v := reflect.ValueOf(data)
	switch {
	case marshals(v):
		return marshalled(data, at)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		inner := *at
		inner.depth++ // a pointer may point to itself
		return dataNode(v.Elem().Interface(), &inner)
	case v.Kind() == reflect.String:
		return dataNode(v.String(), at)
	case v.Kind() == reflect.Array, v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = v.Index(i).Interface()
		}
		return listNode(items, at)
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		m := make(map[string]any, v.Len())
		for key, value := range v.Seq2() {
			m[key.String()] = value.Interface()
		}
		return dataNode(m, at)
	}
	return marshalled(data, at)
}

// marshals reports whether data implements a JSON or text encoding.
func marshals(v reflect.Value) bool {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return v.Kind() != reflect.Pointer || !v.IsNil()
	}
	return false
}

// marshalled returns the tree of data's JSON encoding.
func marshalled(data any, at *dataPath) (*node, error) {
	b, err := json.Marshal(data)
	if err != nil {
		var value *json.UnsupportedValueError
		if errors.As(err, &value) && strings.Contains(value.Str, "cycle") {
			return nil, at.fail(ErrTooDeep)
		}
		return nil, at.fail(fmt.Errorf("%w: %T: %w", ErrUnsupported, data, err))
	}
	value, err := fromJSON(b)
	if err != nil {
		return nil, at.fail(err)
	}
	return dataNode(value, at)
}

// Validate returns the first reason why f cannot be rendered or saved. For Data it is a *DataError.
func (f Fragment) Validate() error {
	if IsMessage(f) && f.Codec == nil && f.lazy == nil {
		return fmt.Errorf("%s: %w", f.Name, ErrNoCodec)
	}
	_, err := fragmentNode(f, nil)
	return err
}
