package engine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/lineage-store/lineage/internal/rawjson"
)

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

// IsFragment reports whether data is a Fragment, or a map or JSON that represents one.
func IsFragment(data any) bool {
	switch d := data.(type) {
	case Fragment:
		return true
	case map[string]any:
		_, ok := fragmentOf(d)
		return ok
	case Object, map[string]string:
		return false
	}
	_, ok := inJSON(data).(Fragment)
	return ok
}

// IsObject reports whether data is rendered as an object with named fields and is not a Fragment. It may be a struct,
// a map of any type, or JSON.
func IsObject(data any) bool {
	switch data.(type) {
	case Object, map[string]any, map[string]string:
		return !IsFragment(data)
	}
	_, ok := inJSON(data).(Object)
	return ok
}

// inJSON returns data of a caller's type in its JSON form, nil if it has none.
func inJSON(data any) any {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	value, err := fromJSON(raw)
	if err != nil {
		return nil
	}
	return value
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
