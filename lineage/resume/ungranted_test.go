package resume

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// FuzzUngranted requires that no member that gives a permission is left, that the rest is, and that the result is JSON.
func FuzzUngranted(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"permissionMode":"x","b":[{"sandbox":1},2,{"c":{"Approval_policy":{}}}]}`, `{"\u0079olo":1}`, `{"trust":1,"trust":2}`, `[]`, `"sandbox"`, ` { "a" : [ { "allowedTools" : [ ] , "b" : 1 } ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Add([]byte(strings.Repeat(`{"a":[`, 50) + strings.Repeat(`]}`, 50)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !rawjson.Valid(raw) {
			return
		}
		safe := ungranted(raw)
		require.True(t, json.Valid(safe), "%s", safe)
		var before, after any
		if json.Unmarshal(raw, &before) != nil { // nested too deeply for this reader
			return
		}
		require.NoError(t, json.Unmarshal(safe, &after))
		require.Equal(t, without(after, 0), after)
		if repeats(raw, 0) {
			return // which of equal keys counts is not said
		}
		require.Equal(t, without(before, 0), after)
		require.Equal(t, safe, ungranted(safe))
	})
}

// without returns a value without members that give permissions, and without what is nested too deeply.
func without(value any, level int) any {
	switch value.(type) {
	case map[string]any, []any:
		if level == maxLevels {
			return nil
		}
	}
	switch v := value.(type) {
	case map[string]any:
		left := make(map[string]any)
		for key, member := range v {
			if !grants(key) {
				left[key] = without(member, level+1)
			}
		}
		return left
	case []any:
		left := make([]any, len(v))
		for i := range v {
			left[i] = without(v[i], level+1)
		}
		return left
	}
	return value
}

// repeats reports whether an object has a key twice.
func repeats(raw []byte, level int) bool {
	if level > maxLevels || rawjson.IsObject(raw) && ambiguous(raw) {
		return level <= maxLevels
	}
	for m := range rawjson.Members(raw) {
		if repeats(m.Value, level+1) {
			return true
		}
	}
	for element := range rawjson.Elements(raw) {
		if repeats(element, level+1) {
			return true
		}
	}
	return false
}
