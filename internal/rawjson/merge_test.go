package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// The examples of RFC 7386, appendix A.
func TestMergePatch(t *testing.T) {
	for _, test := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`}, {`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`}, {`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{``, ` {"a": 1.0, "b": "null"} `, `{"a":1.0,"b":"null"}`}, {`{"é":1}`, `{"\u00e9":2}`, `{"\u00e9":2}`}, {`{"a":1}`, `{"a":2,"a":null}`, `{}`},
	} {
		require.Equal(t, test[2], compact(t, rawjson.MergePatch([]byte(test[0]), []byte(test[1]))), "%s and %s", test[0], test[1])
	}
	require.Equal(t, `{"temperature":1.50}`, string(rawjson.MergePatch([]byte(`{"temperature":1.50}`), []byte(`{}`))), "bytes stay")
}

func compact(t *testing.T, text []byte) string {
	var v json.RawMessage
	require.NoError(t, json.Unmarshal(text, &v))
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// merged is the algorithm of the RFC on decoded values.
func merged(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if was, ok := target.(map[string]any); ok {
		for k, v := range was {
			out[k] = v
		}
	}
	for k, v := range members {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = merged(out[k], v)
		}
	}
	return out
}

func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "object") > 0 {
			return map[string]any(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "null", "é"}), anyValue(depth-1), 0, 3).Draw(t, "members"))
		}
		return rapid.SampledFrom([]any{nil, true, 1.0, "x", "null", []any{nil}}).Draw(t, "value")
	})
}

func TestMergePatchOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parse := func(b []byte) (v any) {
			require.NoError(t, json.Unmarshal(b, &v), "%s", b)
			return v
		}
		document, patch := anyValue(3).Draw(t, "document"), anyValue(3).Draw(t, "patch")
		d, err := json.Marshal(document)
		require.NoError(t, err)
		p, err := json.Marshal(patch)
		require.NoError(t, err)
		require.Equal(t, merged(document, patch), parse(rawjson.MergePatch(d, p)))

		// JoinPatch of a document without null and a patch is a patch with the
		// same result, even on the document.
		clean := rawjson.MergePatch(nil, d)
		joined := rawjson.JoinPatch(clean, p)
		require.Equal(t, parse(rawjson.MergePatch(clean, p)), parse(rawjson.MergePatch(nil, joined)))
		require.Equal(t, parse(rawjson.MergePatch(clean, p)), parse(rawjson.MergePatch(clean, joined)))
	})
}
