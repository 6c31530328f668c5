package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/problem"
)

// bind fills the input of a route: from the body, then from the query, the path and the headers. Unknown members and
// parameters are refused, because a misspelt one would otherwise be ignored silently.
func (c *call) bind(in any) error {
	v := reflect.ValueOf(in).Elem()
	input := inputOf(v.Type())
	if err := c.checkHeaders(input); err != nil {
		return err
	}
	switch {
	case input.whole != nil:
		if isBlank(c.body) {
			return fmt.Errorf("body: %w: must not be empty", lineage.ErrInvalid)
		}
		v.FieldByIndex(input.whole.index).SetBytes(c.body)
	case input.body:
		if err := decode(c.body, in); err != nil {
			return err
		}
	case !isBlank(c.body) && c.r.Method != http.MethodGet:
		return fmt.Errorf("body: %w: must be empty", lineage.ErrInvalid)
	}
	return c.bindParameters(v, input)
}

// checkHeaders returns an error for a header that would be ignored, though the caller relies on it: a condition for a change
// that the route does not check, or a body that is not what it says to be.
func (c *call) checkHeaders(input *inputType) error {
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem.New(http.StatusUnsupportedMediaType, "unsupported encoding", "a body is sent without Content-Encoding")
	}
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		return nil
	}
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if c.r.Header.Get(name) != "" && !slices.ContainsFunc(input.fields, func(f field) bool { return f.from == fromHeader && f.name == name }) {
			return fmt.Errorf("%s: %w: this request has no such condition", name, lineage.ErrInvalid)
		}
	}
	return nil
}

// bindParameters fills the fields of an input that come from the query, the path and the headers.
func (c *call) bindParameters(v reflect.Value, input *inputType) error {
	var query url.Values
	if c.r.URL.RawQuery != "" {
		query = c.r.URL.Query()
	}
	used := 0 // number of query parameters used
	for i := range input.fields {
		f := &input.fields[i]
		var texts []string
		switch f.from {
		case fromPath:
			if !v.FieldByIndex(f.index).IsZero() {
				return fmt.Errorf("%s: %w: it is not a member of the body", f.json, lineage.ErrInvalid)
			}
			text := c.r.PathValue(f.name)
			switch {
			case text != "":
				texts = []string{text}
			case strings.Contains(c.r.Pattern, "{"+f.name+"}"):
				return fmt.Errorf("%s: %w: must not be empty", f.name, lineage.ErrInvalid)
			} // otherwise the input belongs to two routes, one of which does not have this part
		case fromQuery:
			if texts = query[f.name]; len(texts) > 0 {
				used++
			}
		case fromHeader:
			texts = c.r.Header.Values(f.name)
		}
		if len(texts) == 0 {
			continue
		}
		if err := set(v.FieldByIndex(f.index), texts); err != nil {
			return fmt.Errorf("%s %.100q: %w: %s", f.name, texts[0], lineage.ErrInvalid, err.Error())
		}
	}
	if used == len(query) {
		return nil
	}
	for _, f := range input.fields {
		if f.from == fromQuery {
			delete(query, f.name)
		}
	}
	for name := range query {
		return fmt.Errorf("query %.100q: %w: there is no such parameter", name, lineage.ErrInvalid)
	}
	return nil
}

// isBlank reports whether b is white space of JSON.
func isBlank(b []byte) bool { return len(bytes.Trim(b, " \t\r\n")) == 0 }

// decode reads a JSON body. An empty body is an empty object.
func decode(body []byte, into any) error {
	if isBlank(body) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && !isBlank(body[d.InputOffset():]) {
		err = errors.New("there is more after the object")
	}
	if err != nil {
		return fmt.Errorf("body: %w: %s", lineage.ErrInvalid, wrongJSON(err))
	}
	return nil
}

// wrongJSON explains to a caller why JSON does not fit, without the types of this program.
func wrongJSON(err error) string {
	var kind *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Sprintf("must be an object; this is of the type %s", kind.Value)
	case errors.As(err, &kind):
		return fmt.Sprintf("%s must be %s; this is of the type %s", kind.Field, jsonType(kind.Type), kind.Value)
	case errors.As(err, &when):
		return "a time must be like 2006-01-02T15:04:05Z"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// jsonType names the type of JSON that a Go type is read from.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Uint64, reflect.Uint32:
		return "a number from 0 on"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a string"
}

// origin is the part of a request that a member of an input comes from.
type origin int

const (
	fromBody origin = iota
	fromPath
	fromQuery
	fromHeader
)

// field is a member of an input.
type field struct {
	name  string
	from  origin
	doc   string
	index []int
	kind  reflect.Type
	// json is the name in an operation of a batch, empty for none.
	json     string
	optional bool
	whole    bool // the member is the whole body
}

// inputType describes the type of an input.
type inputType struct {
	fields []field
	whole  *field // the member for the whole body, nil if there is none
	body   bool   // there are members that come from the body
}

// knownInputs caches inputs by type.
var knownInputs sync.Map

// inputOf returns the description of a type. It must not be changed.
func inputOf(t reflect.Type) *inputType {
	if cached, known := knownInputs.Load(t); known {
		return cached.(*inputType)
	}
	input := &inputType{fields: readFields(t)}
	for i := range input.fields {
		f := &input.fields[i]
		if f.whole {
			input.whole = f
		}
		input.body = input.body || f.from == fromBody && f.json != ""
	}
	knownInputs.Store(t, input)
	return input
}

// fieldsOf returns the members of an input, including those of embedded structs. They must not be changed.
func fieldsOf(t reflect.Type) []field { return inputOf(t).fields }

func readFields(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for _, inner := range readFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				all = append(all, inner)
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		member := field{name: name, json: name, doc: f.Tag.Get("doc"), index: []int{i}, kind: f.Type, optional: strings.Contains(options, "omit"), whole: f.Tag.Get("body") != ""}
		for tag, from := range map[string]origin{"path": fromPath, "query": fromQuery, "header": fromHeader} {
			if n := f.Tag.Get(tag); n != "" {
				member.name, member.from = n, from
			}
		}
		if member.json == "-" {
			member.json = ""
		}
		all = append(all, member)
	}
	return all
}

// set sets a member from texts.
func set(v reflect.Value, texts []string) error {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
		v.Set(reflect.ValueOf(texts))
		return nil
	}
	if len(texts) > 1 {
		return errors.New("it is given more than once")
	}
	text := texts[0]
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if u.UnmarshalText([]byte(text)) != nil {
			return errors.New("malformed")
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		v.SetBool(value)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return errors.New("must be a number from 0 on")
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return errors.New("must be a number from 0 on")
		}
		v.SetUint(n)
	default:
		return fmt.Errorf("a parameter of the type %s", v.Type()) // of the table: every route is called in a test
	}
	return nil
}
