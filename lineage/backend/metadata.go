package backend

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// MetadataIs is a value that metadata must have.
type MetadataIs struct {
	// Key is a key of the object that the metadata is. Keys of objects inside it are not
	// searched.
	Key string
	// Value is a string, number or bool as JSON. Numbers match by what they are, however
	// they are written. A list has the values that are its elements.
	Value json.RawMessage
}

// Scalar is a string, number or bool at the top of metadata, or in a list there. Equal values have equal forms.
type Scalar struct{ Key, Form string }

// Scalars returns the strings, numbers and bools at the top of metadata and in lists there, by their keys, each once. Of
// a key that is there several times the last counts, as for encoding/json.
func Scalars(metadata []byte) []Scalar {
	var object map[string]json.RawMessage
	if len(metadata) == 0 || json.Unmarshal(metadata, &object) != nil {
		return nil
	}
	all := make([]Scalar, 0, len(object))
	for key, value := range object {
		if form, ok := scalarForm(value); ok {
			all = append(all, Scalar{key, form})
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			continue
		}
		for _, element := range list {
			if form, ok := scalarForm(element); ok {
				all = append(all, Scalar{key, form})
			}
		}
	}
	slices.SortFunc(all, func(a, b Scalar) int { return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Form, b.Form)) })
	return slices.Compact(all)
}

// Scalar returns the value that is looked for; false if it is no string, number or bool.
func (m MetadataIs) Scalar() (Scalar, bool) {
	form, ok := scalarForm(m.Value)
	return Scalar{m.Key, form}, ok
}

// scalarForm returns a text that equal strings, numbers and bools have in common.
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

// Decimal returns a JSON number as its digits, with the sign but without zeros around them,
// and the power of ten they are to be multiplied with. It reports false for an exponent
// beyond reason.
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
