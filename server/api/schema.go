package api

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage/records"
)

// object is a JSON object.
type object = map[string]any

// schemas creates JSON schemas of Go types as encoding/json writes them. Schemas of named structs are collected.
type schemas struct{ named object }

var (
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
	recordType = reflect.TypeFor[records.Record]()
	bytesType  = reflect.TypeFor[[]byte]()
	textType   = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type.
func (s *schemas) of(t reflect.Type) object {
	switch t {
	case timeType:
		return object{"type": "string", "format": "date-time"}
	case rawType:
		return object{}
	case numberType:
		return object{"type": "number"}
	case bytesType:
		return object{"type": "string", "contentEncoding": "base64"}
	}
	if t.Kind() == reflect.Array && t.Implements(textType) { // an id
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		schema := s.of(t.Elem())
		if kind, simple := schema["type"].(string); simple {
			schema["type"] = []string{kind, "null"}
			return schema
		}
		if _, ok := schema["$ref"]; ok {
			return object{"anyOf": []any{schema, object{"type": "null"}}}
		}
		return schema
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		// Slices of records may be null, except those of lists.
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.ref(t)
	}
	return object{}
}

// ref returns a reference to the schema of a struct.
func (s *schemas) ref(t reflect.Type) object {
	name := t.Name()
	if name == "" {
		return s.structOf(t)
	}
	if pkg := t.PkgPath(); !strings.HasSuffix(pkg, "/records") && !strings.HasSuffix(pkg, "/server/api") {
		name = pkg[strings.LastIndexByte(pkg, '/')+1:] + name
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	if _, known := s.named[name]; !known {
		s.named[name] = object{} // the struct may contain itself
		s.named[name] = s.structOf(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// structOf returns the schema of a struct. For a record it includes the type.
func (s *schemas) structOf(t reflect.Type) object {
	properties, required := object{}, []string{}
	if record, ok := reflect.New(t).Interface().(records.Record); ok {
		properties["type"] = object{"const": record.RecordType()}
		required = append(required, "type")
	}
	s.members(t, properties, &required)
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// members adds the members of a struct, including those of embedded structs.
func (s *schemas) members(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			s.members(inner, properties, required)
			continue
		}
		if name == "" {
			name = f.Name
		}
		schema := s.of(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			schema["description"] = doc
		}
		properties[name] = schema
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// input returns the schema of a route's body, nil if it has none. With an operation name, it is the schema of the
// operation.
func (s *schemas) input(t reflect.Type, op string) object {
	properties, required := object{}, []string{}
	if op != "" {
		properties["op"], required = object{"const": op}, append(required, "op")
	}
	for _, f := range fieldsOf(t) {
		if f.json == "" || op == "" && f.from == fromPath {
			continue
		}
		if f.whole && op == "" {
			return object{"description": f.doc}
		}
		if op == "" && f.from == fromHeader { // the header is as good
			continue
		}
		schema := s.of(f.kind)
		if f.doc != "" {
			schema["description"] = f.doc
		}
		properties[f.json] = schema
		if !f.optional {
			required = append(required, f.json)
		}
	}
	if len(properties) == 0 {
		return nil
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
