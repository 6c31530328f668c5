package agents

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Changes of a JSON value have the same result as on values of encoding/json.
func TestMutable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const object = `{"a":[{"x":1.50},2,"three"],"b":{"c":[]}}`
		m := &mutable{raw: []byte(object)}
		var model any
		require.NoError(t, json.Unmarshal([]byte(object), &model))
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			var path [][]byte
			var steps []any
			for range rapid.IntRange(1, 3).Draw(t, "steps") {
				step := rapid.SampledFrom([]string{`"a"`, `"b"`, `"c"`, `"x"`, `0`, `1`, `3`, `-1`, `99999999999999999999`}).Draw(t, "step")
				path = append(path, []byte(step))
				var s any
				require.NoError(t, json.Unmarshal([]byte(step), &s))
				steps = append(steps, s)
			}
			value := rapid.SampledFrom([]string{`{"c":1}`, `[]`, `[1,{}]`, `null`, `"s"`, `7`}).Draw(t, "value")
			var v any
			require.NoError(t, json.Unmarshal([]byte(value), &v))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				if m.set(path, []byte(value)) {
					model = modelSet(model, steps, v)
				}
			case 1:
				if m.set(path, nil) {
					model = modelSet(model, steps, nil)
				}
			case 2:
				if from := rapid.IntRange(-1, 3).Draw(t, "from"); m.push(path, from, []byte(value)) {
					model = modelPush(model, steps, from, v)
				}
			}
			require.True(t, rawjson.IsObject(m.bytes()) && rawjson.Check(m.bytes()) == nil, "%s", m.bytes())
			want, err := json.Marshal(model)
			require.NoError(t, err)
			require.JSONEq(t, string(want), withoutNulls(t, m.bytes()), fmt.Sprint(steps))
		}
	})
}

// withoutNulls removes members that are null: the model removes them, too.
func withoutNulls(t *rapid.T, raw []byte) string {
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	b, err := json.Marshal(pruned(v))
	require.NoError(t, err)
	return string(b)
}

func pruned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if v[k] = pruned(e); v[k] == nil {
				delete(v, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return v
}

func modelSet(v any, path []any, value any) any {
	if len(path) == 0 {
		return pruned(value)
	}
	switch v := v.(type) {
	case map[string]any:
		key := path[0].(string)
		if got := modelSet(v[key], path[1:], value); got == nil {
			delete(v, key)
		} else {
			v[key] = got
		}
		return v
	case []any:
		i := int(path[0].(float64))
		if i == len(v) {
			return append(v, modelSet(nil, path[1:], value))
		}
		v[i] = modelSet(v[i], path[1:], value)
		return v
	}
	return nil
}

func modelPush(v any, path []any, from int, value any) any {
	if len(path) == 0 {
		list := v.([]any)
		if from >= 0 {
			list = list[:from:from]
		}
		if more, ok := value.([]any); ok {
			list = append(list, more...)
		}
		return pruned(list)
	}
	switch v := v.(type) {
	case map[string]any:
		v[path[0].(string)] = modelPush(v[path[0].(string)], path[1:], from, value)
	case []any:
		v[int(path[0].(float64))] = modelPush(v[int(path[0].(float64))], path[1:], from, value)
	}
	return v
}
