package backend

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// MetadataIs is a value that metadata must have, at a key or in the array at that key.
type MetadataIs struct {
	// Key is a key of the metadata object. Keys of nested objects are not searched.
	Key string
	// Value is a string, number or bool as JSON. Numbers match by value, however they are
	// written.
	Value json.RawMessage
}

// Scalar is a string, number or bool at a key of metadata, or in the array at that key. Equal
// values have equal forms.
type Scalar struct{ Key, Form string }

// Scalars returns the strings, numbers and bools of metadata, sorted and without duplicates.
// If a key occurs several times, the last counts, as in encoding/json.
func Scalars(metadata []byte) []Scalar {
	var object map[string]json.RawMessage
	if len(metadata) == 0 || json.Unmarshal(metadata, &object) != nil {
		return nil
	}
	all := make([]Scalar, 0, len(object))
	for key, value := range object {
		values := []json.RawMessage{value}
		if value[0] == '[' {
			_ = json.Unmarshal(value, &values) // cannot fail, because it is a part of valid JSON
		}
		for _, value := range values {
			if form, ok := scalarForm(value); ok {
				all = append(all, Scalar{key, form})
			}
		}
	}
	slices.SortFunc(all, func(a, b Scalar) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Form, b.Form))
	})
	return slices.Compact(all)
}

// Scalar returns the value to match; false if it is not a string, number or bool.
func (m MetadataIs) Scalar() (Scalar, bool) {
	form, ok := scalarForm(m.Value)
	return Scalar{m.Key, form}, ok
}

// scalarForm returns the same text for equal strings, numbers and bools.
func scalarForm(value json.RawMessage) (form string, ok bool) {
	var v any
	d := json.NewDecoder(strings.NewReader(string(value)))
	d.UseNumber()
	if !json.Valid(value) || d.Decode(&v) != nil {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return "s" + v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		if digits, exponent, ok := Decimal(v.String()); ok {
			return "n" + digits + "e" + strconv.Itoa(exponent), true
		}
		return "N" + v.String(), true
	}
	return "", false
}

// Decimal returns a JSON number as digits, with the sign but without leading and trailing
// zeros, and a power of ten. It returns false for an excessive exponent.
func Decimal(s string) (digits string, exponent int, ok bool) {
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
