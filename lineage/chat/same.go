package chat

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
)

// sameJSON reports whether two JSON texts have the same value, however they are laid out. Databases keep the value,
// but not the layout. A text that is not JSON equals only itself.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && sameValue(x, y)
}

// decode decodes JSON. Numbers stay as they are written.
func decode(b json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a.String(), b.String())
	}
	return reflect.DeepEqual(a, b)
}

// sameNumber reports whether two numbers are equal, exactly.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	digitsA, exponentA, okA := backend.Decimal(a)
	digitsB, exponentB, okB := backend.Decimal(b)
	return okA && okB && digitsA == digitsB && exponentA == exponentB
}
