package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// maxText limits a text argument of a client, in bytes.
const maxText = 4 << 10

// checked returns an error if an argument is too long.
func checked(args ...string) error {
	for _, arg := range args {
		if len(arg) > maxText {
			return fmt.Errorf("an argument of %d bytes: %w: at most %d", len(arg), lineage.ErrTooLarge, maxText)
		}
	}
	return nil
}

// moment parses a time: a day, or a time in RFC 3339. An empty text is the zero time.
func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %.40q: %w: must be like 2026-01-31, or as in RFC 3339", name, text, lineage.ErrInvalid)
}

// checkArguments returns an error that a model understands if an argument is missing, unknown or of the wrong type for a tool with
// the input In. Other errors are found by the schema, whose messages are written for programmers.
func checkArguments[In any](raw json.RawMessage) error {
	args := make(map[string]json.RawMessage)
	if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
		return fmt.Errorf("arguments: %w: must be an object", lineage.ErrInvalid)
	}
	var wrong, names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		value, given := args[name]
		delete(args, name)
		kind := f.Type.Kind()
		none := kind == reflect.Pointer || kind == reflect.Slice // null is allowed
		if kind == reflect.Pointer {
			kind = f.Type.Elem().Kind()
		}
		text := ""
		switch {
		case !given && options == "":
			text = "is missing"
		case given && (json.Unmarshal(value, reflect.New(f.Type).Interface()) != nil || string(value) == "null" && !none):
			text = "must be " + kinds[kind]
		default:
			continue
		}
		wrong = append(wrong, name+" "+text+" ("+f.Tag.Get("jsonschema")+")")
	}
	if len(args) > 0 {
		wrong = append(wrong, fmt.Sprintf("%.40q is not one of them: %s", slices.Min(slices.Collect(maps.Keys(args))), strings.Join(names, ", ")))
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("arguments: %w: %s", lineage.ErrInvalid, strings.Join(wrong, "; "))
}

// kinds has the words for the types of arguments.
var kinds = map[reflect.Kind]string{
	reflect.String: "a text", reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Uint64: "a whole number that is not negative", reflect.Slice: "a list of texts",
}
