package rawjson_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/rawjson"
)

func TestMain(m *testing.M) {
	campaign.Checks(300)
	os.Exit(m.Run())
}

func TestEdits(t *testing.T) {
	for _, test := range []struct{ in, set, removed string }{
		{`{}`, `{"a":9}`, `{}`},
		{` { } `, ` {"a":9 } `, ` { } `},
		{`{"a":1}`, `{"a":9}`, `{}`},
		{`{ "a" : 1 , "b" : 2 }`, `{ "a" : 9 , "b" : 2 }`, `{ "b" : 2 }`},
		{`{"b":2, "a":1 }`, `{"b":2, "a":9 }`, `{"b":2 }`},
		{`{"a":1,"\u0061":{"a":3},"b":"a"}`, `{"a":1,"\u0061":9,"b":"a"}`, `{"b":"a"}`},
		{`{"b":[1,{"a":1}]}`, `{"b":[1,{"a":1}],"a":9}`, `{"b":[1,{"a":1}]}`},
	} {
		require.Equal(t, test.set, string(rawjson.Set([]byte(test.in), []byte(`"a"`), []byte("9"))))
		require.Equal(t, test.removed, string(rawjson.Remove([]byte(test.in), "a")))
	}
	require.Equal(t, `3`, string(rawjson.Last([]byte(`{"a":1,"b":2,"a":3}`), "a")))
	require.Nil(t, rawjson.Last([]byte(`["a"]`), "a"))
}

// An edit has the same effect as on decoded values, and leaves everything else
// unchanged.
func TestEditsOfAnyObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t"})
		var members []string
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			key := rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`, `"c,}"`}).Draw(t, "key")
			value := rapid.SampledFrom([]string{`1`, `"x,\"}"`, `{"a":[1]}`, `null`, `[ ]`}).Draw(t, "value")
			members = append(members, space.Draw(t, "s")+key+space.Draw(t, "s")+":"+space.Draw(t, "s")+value+space.Draw(t, "s"))
		}
		in := []byte("{" + strings.Join(members, ",") + "}")
		var want map[string]any
		require.NoError(t, json.Unmarshal(in, &want))
		var got map[string]any
		set := rawjson.Set(in, []byte(`"a"`), []byte(`{"new":1}`))
		require.NoError(t, json.Unmarshal(set, &got), "%s", set)
		want["a"] = map[string]any{"new": 1.0}
		require.Equal(t, want, got)
		removed := rawjson.Remove(in, "a")
		got = nil
		require.NoError(t, json.Unmarshal(removed, &got), "%s", removed)
		delete(want, "a")
		require.Equal(t, want, got)
		require.Equal(t, string(removed), string(rawjson.Remove(removed, "a")))
	})
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, `a"b\`: `"a\"b\\"`, "<&>é\n\x00": `"<&>é\n\u0000"`, "\u2028": `"\u2028"`, "a\xffb": `"a\ufffdb"`,
	} {
		require.Equal(t, want, string(rawjson.Quote(text)))
	}
}

// Members go at any depth, and nothing else changes.
func TestRemoveDeep(t *testing.T) {
	for in, want := range map[string]string{
		`{"k":1}`: `{}`, ` { "k" : {"a":1} } `: ` {  } `, `{"k":1,"a":2}`: `{"a":2}`, `{"a":2, "k":1}`: `{"a":2}`, `{"k":1,"\u006b":2}`: `{}`, `{"k":1,"k":2,"a":3,"k":4,"k":5}`: `{"a":3}`,
		`[{"a":[{"k":"}"},{"b":{"k":[],"c":"k"}}]},"k",7]`: `[{"a":[{},{"b":{"c":"k"}}]},"k",7]`, `"k"`: `"k"`, `7`: `7`, `[]`: `[]`, `{"a":{},"b":[ ]}`: `{"a":{},"b":[ ]}`,
	} {
		require.Equal(t, want, string(rawjson.RemoveDeep([]byte(in), func(key string) bool { return key == "k" })), in)
	}
	value := rapid.SampledFrom([]string{`1`, `"k"`, `{}`, `[]`, `null`})
	var any func(depth int) *rapid.Generator[string]
	any = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			space := rapid.SampledFrom([]string{"", " "}).Draw(t, "space")
			var parts []string
			switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case depth == 0 || kind == 0:
				return value.Draw(t, "value")
			case kind == 1:
				for range rapid.IntRange(0, 3).Draw(t, "elements") {
					parts = append(parts, space+any(depth-1).Draw(t, "element")+space)
				}
				return "[" + strings.Join(parts, ",") + "]"
			}
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				parts = append(parts, space+rapid.SampledFrom([]string{`"k"`, `"a"`, `"b"`, `"\u006B"`, `"\u006b"`}).Draw(t, "key")+space+":"+any(depth-1).Draw(t, "value")+space)
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
	}
	var without func(v interface{}) interface{}
	without = func(v interface{}) interface{} {
		switch v := v.(type) {
		case map[string]interface{}:
			delete(v, "k")
			for key := range v {
				v[key] = without(v[key])
			}
		case []interface{}:
			for i := range v {
				v[i] = without(v[i])
			}
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		in := any(4).Draw(t, "in")
		var want, got interface{}
		require.NoError(t, json.Unmarshal([]byte(in), &want))
		out := rawjson.RemoveDeep([]byte(in), func(key string) bool { return key == "k" })
		require.NoError(t, json.Unmarshal(out, &got), "%s: %s", in, out)
		require.Equal(t, without(want), got, in)
	})
	for _, broken := range []string{``, `{`, `{"k`, `{"k"`, `{"k":`, `{"k":1,`, `[`, `[{"k":1`, `{"a":{`, ` `} {
		rawjson.RemoveDeep([]byte(broken), func(string) bool { return true })
		rawjson.RemoveDeep([]byte(broken), func(string) bool { return false })
	}
}

// UnquoteAs recognizes the strings that JSON.stringify writes, which are those of encoding/json without HTML escapes,
// except for U+2028 and U+2029.
func TestUnquoteAs(t *testing.T) {
	fragment := rapid.SampledFrom([]string{`\n`, `\u000a`, `\u000A`, `\u001f`, `\u001F`, `\u0000`, `\u0008`, `\b`, `\f`, `\u007f`, `\/`, `/`, `\\`, `\"`, `\u0022`, `\u0041`, `é`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `a`, "\x7f", `<`, `\u003c`})
	rapid.Check(t, func(t *rapid.T) {
		raw := `"` + strings.Join(rapid.SliceOfN(fragment, 0, 8).Draw(t, "fragments"), "") + `"`
		require.True(t, rawjson.Valid([]byte(raw)))
		text, exact, common := rawjson.UnquoteAs([]byte(raw))
		var want string
		require.NoError(t, json.Unmarshal([]byte(raw), &want))
		require.Equal(t, want, string(text))
		var again bytes.Buffer
		e := json.NewEncoder(&again)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(want))
		require.Equal(t, exact && strings.TrimSuffix(again.String(), "\n") == raw, exact && common, raw)
	})
}

// A string ends at its first quote that is not escaped.
func TestStringEnd(t *testing.T) {
	for text, want := range map[string]int{
		`""`: 2, `"`: 1, `"a`: 2, `"\"`: 3, `"\""x`: 4, `"\\"x`: 4, `"\\\"`: 5, `"\\\""x`: 6, `"\\\\"`: 6, `"\n\\"y"`: 6, `"\`: 2, `"a"b\"`: 3,
	} {
		require.Equal(t, want, rawjson.StringEnd([]byte(text), 0), text)
		require.Equal(t, want+2, rawjson.StringEnd([]byte(`\\`+text), 2), text)
	}
}

// A text is quoted as encoding/json does it without escapes for HTML, and a plain one with a single allocation.
func TestQuotePlain(t *testing.T) {
	encoded := func(text string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(text))
		return strings.TrimSuffix(b.String(), "\n")
	}
	for c := range 256 {
		for _, text := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}) + "b", string(rune(c))} {
			require.Equal(t, encoded(text), string(rawjson.Quote(text)))
		}
	}
	for _, text := range []string{"", "msg_01", "<&>", "é", "\u2028", "\u2029", "\U0001f600", "\x7f", "a\xff"} {
		require.Equal(t, encoded(text), string(rawjson.Quote(text)))
	}
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { rawjson.Quote("258c7280-ae70-4798-800f-63464d01a85d") }))
}
