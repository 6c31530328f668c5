package chat

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// sameJSON reports whether two JSON texts have the same value, however they are
// laid out: databases keep the one and not the other. Text that is not JSON is the
// same only as itself.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && sameValue(x, y)
}

// decode decodes JSON with its numbers as they are written.
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
	switch b.(type) {
	case map[string]any, []any:
		return false // they cannot be compared
	}
	return a == b
}

// sameNumber reports whether two numbers are equal, exactly.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	digitsA, exponentA, okA := splitNumber(a)
	digitsB, exponentB, okB := splitNumber(b)
	return okA && okB && digitsA == digitsB && exponentA == exponentB
}

// splitNumber returns a number as its digits, with the sign but without zeros
// around them, and the power of ten they are to be multiplied with. It reports
// false for an exponent beyond reason.
func splitNumber(s string) (digits string, exponent int, ok bool) {
	s, sign := strings.CutPrefix(s, "-")
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(s[at+1:]); err != nil || exponent < -1e9 || exponent > 1e9 {
			return "", 0, false
		}
		s = s[:at]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0", 0, true
	}
	exponent += len(digits) - len(trimmed)
	if sign {
		trimmed = "-" + trimmed
	}
	return trimmed, exponent, true
}
