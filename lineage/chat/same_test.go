package chat

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

func TestSame(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true,null]}`, " {\"b\": [ true, null ], \"a\": 1}", true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[]`, `{}`, false},
		{`1`, `[]`, false},
		{`null`, `{}`, false},
		{`"a"`, `"\u0061"`, true},
		{`"1"`, `1`, false},
		{`1`, `1.0`, true},
		{`-1.50e+10`, `-15000000000`, true},
		{`0`, `-0.00e7`, true},
		{`100`, `1E2`, true},
		{`0.001`, `1e-3`, true},
		{`1`, `-1`, false},
		{`10`, `1`, false},
		{`0.10000000000000000000001`, `0.1`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`1e999999999999`, `1e999999999999`, true},
		{`1e999999999999`, `10e999999999998`, false},
		{`broken`, `broken`, true},
		{`broken`, `1`, false},
	} {
		require.Equal(t, test.want, sameJSON(json.RawMessage(test.a), json.RawMessage(test.b)), "%s and %s", test.a, test.b)
		require.Equal(t, test.want, sameJSON(json.RawMessage(test.b), json.RawMessage(test.a)), "%s and %s", test.b, test.a)
	}
}

// FuzzSame holds what the decoder makes of a text against the text.
func FuzzSame(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.50e3,"x",null,true]}`, `0e0`, `1e-400`, `"\ud800"`, `[[]]`, `{`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, a []byte) {
		require.True(t, sameJSON(a, a))
		v, err := decode(a)
		if err != nil || !json.Valid(a) {
			return
		}
		b, err := json.MarshalIndent(v, "", " ")
		require.NoError(t, err)
		require.True(t, sameJSON(a, b))
		require.False(t, sameJSON(a, append([]byte("[1,"), append(b, ']')...)))
	})
}

// What is derived here is on disk and must not change.
func TestFrozen(t *testing.T) {
	require.Equal(t, "dea95750-0dbb-8a33-be3f-df24db0c9499", lineage.SourceBranch("b").String())
	require.Equal(t, `{"type":"fragment"}`, string(typeMetadata("fragment")))
}
