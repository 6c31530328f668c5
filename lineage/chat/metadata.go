package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MetadataFilter selects chats by a value in their metadata.
type MetadataFilter struct {
	// Key is the path to the value: the keys of nested objects, separated by dots.
	Key string `json:"key"`
	// Value is a string, number or bool. It matches if it is at the key or in an array at the key. A nil Value
	// matches if the key is missing or null.
	Value any `json:"value"`
}

// Matches reports whether metadata has the value. Numbers match by value, however they are written.
func (f MetadataFilter) Matches(metadata json.RawMessage) bool {
	at := metadata
	for key := range strings.SplitSeq(f.Key, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			at = nil
			break
		}
		at = object[key]
	}
	if len(at) == 0 || string(at) == "null" {
		return f.Value == nil
	}
	wanted, err := json.Marshal(f.Value)
	if err != nil {
		return false
	}
	values := []json.RawMessage{at}
	if at[0] == '[' {
		_ = json.Unmarshal(at, &values) // cannot fail, because it is a part of valid JSON
	}
	return slices.ContainsFunc(values, func(v json.RawMessage) bool { return sameJSON(v, wanted) })
}

func (f MetadataFilter) check() error {
	switch f.Value.(type) {
	case nil, string, bool, json.Number,
		int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return nil
	}
	return fmt.Errorf("metadata filter %q: %T is no string, number or bool: %w", f.Key, f.Value, ErrInvalid)
}
