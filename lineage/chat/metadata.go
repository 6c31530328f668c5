package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MetadataFilter chooses chats by a value in their metadata.
type MetadataFilter struct {
	// Key is the path to the value: the keys of nested objects, with dots between.
	Key string `json:"key"`
	// Value is a string, number or bool that must be there, by itself or in a list, or nil: then
	// there must be null or nothing.
	Value any `json:"value"`
}

// Matches reports whether metadata has the value. Numbers match by what they
// are, however they are written.
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
	if err != nil || f.Value == nil {
		return false
	}
	var list []json.RawMessage
	if json.Unmarshal(at, &list) == nil {
		return slices.ContainsFunc(list, func(element json.RawMessage) bool { return sameJSON(element, wanted) })
	}
	return sameJSON(at, wanted)
}

func (f MetadataFilter) check() error {
	switch f.Value.(type) {
	case nil, string, bool, json.Number,
		int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return nil
	}
	return fmt.Errorf("metadata filter %q: %T is no string, number or bool: %w", f.Key, f.Value, ErrInvalid)
}
