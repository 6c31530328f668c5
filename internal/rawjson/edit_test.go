package rawjson_test

import (
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
