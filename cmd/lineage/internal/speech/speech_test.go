package speech

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfReadsTheCommonForms(t *testing.T) {
	const js = "application/json"
	for name, c := range map[string]struct{ mediaType, body, want string }{
		"text":           {"text/plain", `{"text":"kept"}`, `{"text":"kept"}`},
		"not JSON":       {js, "{oops", "{oops"},
		"string":         {js, `"hello"`, "hello"},
		"parts":          {js, `{"role":"user","parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb"},
		"blocks":         {js, `[{"type":"thinking","thinking":"hm"},{"type":"text","text":"done"},{"type":"tool_use","name":"ls","input":{"dir": "/"}}]`, "(thinking) hm\ndone\n→ ls({\"dir\":\"/\"})"},
		"result":         {js, `[{"type":"tool_result","content":[{"type":"text","text":"ok"}]}]`, "← ok"},
		"calls":          {js, `{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `→ f({"x":1})`},
		"wrapped":        {js, `{"message":{"content":"inside"}}`, "inside"},
		"unknown object": {js, ` {"a":1} `, `{"a":1}`},
		"number":         {js, `7`, `7`},
		"nothing said":   {js, `{"parts":[]}`, `{"parts":[]}`},
		"deep":           {js, strings.Repeat("[", 500) + strings.Repeat("]", 500), strings.Repeat("[", 500-maxDepth-1) + strings.Repeat("]", 500-maxDepth-1)},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Of(c.mediaType, []byte(c.body))) })
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{`{"parts":[{"type":"tool-x","input":{},"output":1}]}`, `[["a"],null,{"text":["b"]}]`, `{"content":{"content":{"text":"x"}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		said := Of("application/json", body)
		require.LessOrEqual(t, len(said), 8*len(body)+64)
	})
}
