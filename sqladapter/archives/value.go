package archives

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// A value is a decoded value: nil, bool, json.Number, string, []byte, []any, fields or *instance.

// fields are the members of an object, in order.
type fields []field

type field struct {
	key   string
	value any
}

func (f fields) get(key string) any {
	for i := range f {
		if f[i].key == key {
			return f[i].value
		}
	}
	return nil
}

func (f fields) text(key string) string {
	s, _ := f.get(key).(string)
	return s
}

// instance is an object of a class, with its arguments.
type instance struct {
	module, class string
	value         any
}

// appendJSON appends a value as JSON. An instance is its value; if that is an object, "__class__"
// is its class name.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []byte:
		b = append(b, `{"__bytes__":"`...)
		b = base64.StdEncoding.AppendEncode(b, v)
		return append(b, `"}`...)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case fields:
		return appendFields(b, "", v)
	case *instance:
		name := v.module + "." + v.class
		if f, ok := v.value.(fields); ok {
			return appendFields(b, name, f)
		}
		return appendFields(b, name, fields{{"value", v.value}})
	}
	return append(b, "null"...)
}

func appendFields(b []byte, class string, f fields) []byte {
	b = append(b, '{')
	if class != "" {
		b = append(b, `"__class__":`...)
		b = appendString(b, class)
	}
	for i, m := range f {
		if i > 0 || class != "" {
			b = append(b, ',')
		}
		b = append(appendString(b, m.key), ':')
		b = appendJSON(b, m.value)
	}
	return append(b, '}')
}

func appendString(b []byte, s string) []byte { return append(b, rawjson.Quote(s)...) }

// decodeJSON decodes JSON. Objects in LangChain's serialised form become instances.
func decodeJSON(a *allowance, raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeToken(d, 0, a)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	return v, nil
}

func decodeToken(d *json.Decoder, depth int, a *allowance) (any, error) {
	if depth > maxPackedDepth {
		return nil, errTooDeep
	}
	if err := a.value(); err != nil {
		return nil, err
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeToken(d, depth+1, a)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		if err := a.object(); err != nil {
			return nil, err
		}
		f := fields{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeToken(d, depth+1, a)
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			f = append(f, field{name, v})
		}
		_, err := d.Token()
		return constructed(f), err
	}
	return t, nil
}

// constructed converts {"lc": 1, "type": "constructor", "id": […, class], "kwargs": {…}} to an
// instance.
func constructed(f fields) any {
	id, ok := f.get("id").([]any)
	if f.get("lc") == nil || f.text("type") != "constructor" || !ok || len(id) == 0 {
		return f
	}
	class, _ := id[len(id)-1].(string)
	module := ""
	for _, part := range id[:len(id)-1] {
		s, _ := part.(string)
		if module != "" {
			module += "."
		}
		module += s
	}
	return &instance{module, class, f.get("kwargs")}
}

func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

func cleanText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(bytes.ToValidUTF8(b, []byte("\uFFFD")))
}
