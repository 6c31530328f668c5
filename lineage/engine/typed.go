package engine

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// fragmentOf returns the fragment that a map with the members name, a text, and data represents. Members that a
// fragment does not have, or of other types, are ignored.
func fragmentOf(m map[string]any) (Fragment, bool) {
	name, named := m["name"].(string)
	data, has := m["data"]
	if !named || !has {
		return Fragment{}, false
	}
	f := Fragment{Name: name, Data: data}
	f.ID, _ = m["id"].(string)
	f.Persist, _ = m["persist"].(bool)
	f.Metadata, _ = m["metadata"].(map[string]any)
	if kind, ok := m["type"].(string); ok {
		f.Type = FragmentType(kind)
	}
	return f, true
}

// MarshalJSON writes a fragment as {"name": …, "data": …}, with id, type, persist and metadata if
// set. The data of a message is its stored form.
func (f Fragment) MarshalJSON() ([]byte, error) {
	out := struct {
		ID       string         `json:"id,omitempty"`
		Name     string         `json:"name"`
		Data     any            `json:"data"`
		Type     FragmentType   `json:"type,omitempty"`
		Persist  bool           `json:"persist,omitempty"`
		Metadata map[string]any `json:"metadata,omitempty"`
	}{f.ID, f.Name, f.Data, f.Type, f.Persist, f.Metadata}
	if IsMessage(f) && f.Codec != nil {
		data, err := f.Codec.Encode()
		if err != nil {
			return nil, err
		}
		out.Data = data
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the result of MarshalJSON, including nested fragments. The data of a message
// is its stored form.
func (f *Fragment) UnmarshalJSON(data []byte) error {
	value, err := fromJSON(data)
	if err != nil {
		return err
	}
	read, ok := value.(Fragment)
	if !ok {
		return fmt.Errorf("%w: JSON of a fragment needs name and data", ErrUnsupported)
	}
	if IsMessage(read) {
		message, err := MessageJSON(rawjson.Last(data, "data"))
		if err != nil {
			return err
		}
		message.Name, message.Persist, message.Metadata = read.Name, read.Persist, read.Metadata
		read = message
	}
	*f = read
	return nil
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

// typedNode returns the tree of data of other types.
func typedNode(data any, at *step) (*node, error) {
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
func marshalled(data any, at *step) (*node, error) {
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

// fromJSON returns JSON as fragment data: objects with their members in order, fragments as
// Fragment.
func fromJSON(b []byte) (any, error) {
	if !rawjson.Valid(b) {
		return nil, fmt.Errorf("%w: not JSON", ErrUnsupported)
	}
	return jsonData(b[rawjson.SkipSpace(b, 0):], 0)
}

// jsonData is fromJSON for a value of valid JSON.
func jsonData(raw []byte, depth int) (any, error) {
	switch {
	case rawjson.IsString(raw):
		return rawjson.Str(raw), nil
	case rawjson.IsNull(raw):
		return nil, nil
	case rawjson.IsTrue(raw), raw[0] == 'f':
		return rawjson.IsTrue(raw), nil
	case !rawjson.IsArray(raw) && !rawjson.IsObject(raw):
		return json.Number(bytes.TrimSpace(raw)), nil
	case depth > MaxDepth:
		return nil, ErrTooDeep
	case rawjson.IsArray(raw):
		items := []any{}
		for e := range rawjson.Elements(raw) {
			item, err := jsonData(e, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	}
	var fields Object
	for m := range rawjson.Members(raw) {
		value, err := jsonData(m.Value, depth+1)
		if err != nil {
			return nil, err
		}
		fields = append(fields, Field{m.Key, value})
	}
	m := fields.asMap()
	if metadata, ok := m["metadata"].(Object); ok {
		m["metadata"] = metadata.asMap()
	}
	if f, ok := fragmentOf(m); ok && len(m) == len(fields) {
		return f, nil
	}
	return fields, nil
}

func (o Object) asMap() map[string]any {
	m := make(map[string]any, len(o))
	for _, f := range o {
		m[f.Name] = f.Value
	}
	return m
}
