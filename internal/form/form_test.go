package form_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/structure"
)

func bodies(s form.SplitMessage) [][]byte {
	var b [][]byte
	for _, p := range s.Pieces {
		b = append(b, p.Body)
	}
	return b
}

// told lists pieces as "kind name: body", in the order of the message.
func told(s form.SplitMessage) []string {
	pieces := slices.Clone(s.Pieces[1:])
	pieces = slices.Insert(pieces, form.FirstAt(s.Form), s.Pieces[0])
	var list []string
	for _, p := range pieces {
		list = append(list, strings.TrimSpace(p.Kind.String()+" "+p.Name)+": "+string(p.Body))
	}
	return list
}

func TestPieces(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name, role, message string
		want                []string
	}{
		{"a string", "user", `"hi"`, []string{"text: hi"}},
		{"plain content", "user", `{"role":"user","content":"hi"}`, []string{"text: hi"}},
		{"escapes", "user", `{"content":"a\n\"b\" \\ é <b>"}`, []string{"text: a\n\"b\" \\ é <b>"}},
		{"empty text", "assistant", `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"q\":1}"}}]}`,
			[]string{`input look: {"q":1}`}},
		{"chat completions result", "tool", `{"role":"tool","tool_call_id":"c1","name":"look","content":"found"}`, []string{"output look: found"}},
		{"a result without a role", "tool", `{"content":"found"}`, []string{"output: found"}},
		{"anthropic blocks", "assistant", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"abc"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t1","name":"look","input":{"q":[1]}}]}`,
			[]string{"reasoning: hm", "text: hi", `input look: {"q":[1]}`}},
		{"anthropic result", "user", `[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"found"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"type":"text","text":"so"}]`,
			[]string{"output: found", "file: AAAA", "text: so"}},
		{"anthropic result as text", "user", `[{"type":"tool_result","tool_use_id":"t1","content":"found"}]`, []string{"output: found"}},
		{"redacted", "assistant", `[{"type":"redacted_thinking","data":"zzz"}]`, []string{"data: zzz"}},
		{"ui message", "assistant", `{"id":"m1","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"text","text":"hi"},{"type":"tool-look","toolCallId":"c","state":"output-available","input":{"q":1},"output":"found"},{"type":"file","url":"data:image/png;base64,AA","mediaType":"image/png"},{"type":"data-note","data":{"n":1}}]}`,
			[]string{"reasoning: hm", "text: hi", `input look: {"q":1}`, "output look: found", "file: data:image/png;base64,AA", `data: {"n":1}`}},
		{"a tool with a name", "assistant", `{"parts":[{"type":"dynamic-tool","toolName":"look","input":"x","output":{"a":null},"errorText":"bad"}]}`,
			[]string{"input look: x", `output look: {"a":null}`, "output look: bad"}},
		{"responses", "assistant", `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}`, []string{"text: hi"}},
		{"responses call", "assistant", `{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"}`, []string{"input look: {}"}},
		{"responses result", "tool", `{"type":"function_call_output","call_id":"c1","output":"found"}`, []string{"output: found"}},
		{"responses reasoning", "assistant", `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"zz"}`, []string{"reasoning: hm", "data: zz"}},
		{"gemini", "model", `{"role":"model","parts":[{"text":"hi"},{"functionCall":{"name":"look","args":{"q":1}}},{"functionResponse":{"name":"look","response":{"r":2}}}]}`,
			[]string{"text: hi", `input look: {"q":1}`, `output look: {"r":2}`}},
		{"an unknown long text", "user", `{"content":"hi","note":"` + long + `"}`, []string{"text: hi", "data: " + long}},
		{"an unknown large value", "user", `{"content":"hi","trace":[` + strings.Repeat("1,", 600) + `1]}`, []string{"text: hi", "data: [" + strings.Repeat("1,", 600) + "1]"}},
		{"nothing said", "user", ` { "content" : null , "n":1.0, "b": true } `, []string{"text: "}},
		{"an empty result", "tool", `{"content":[ ],"tool_call_id":"c"}`, []string{"output: "}},
		{"an empty text", "user", `{"id":"m","content":{"content_type":"text","parts":[""]},"n":1}`, []string{"text: "}},
		{"no text", "user", `{"n":[1.0,true]}`, []string{`data: {"n":[1.0,true]}`}},
		{"an empty text beside a call", "assistant", `{"content":"","tool_calls":[{"function":{"name":"look","arguments":"{}"}}]}`, []string{"input look: {}"}},
		{"Goose", "assistant", `{"role":"assistant","content":[{"type":"text","text":"hi"},{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"look","arguments":{"q":1}}}},{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"found"}],"isError":false}}}]}`,
			[]string{"text: hi", `input look: {"q":1}`, "output: found"}},
		{"Crush", "assistant", `{"role":"assistant","parts":[{"type":"reasoning","data":{"thinking":"hm","signature":""}},{"type":"text","data":{"text":"hi"}},{"type":"tool_call","data":{"id":"c","name":"look","input":"{\"q\":1}","finished":true}},{"type":"tool_result","data":{"tool_call_id":"c","name":"look","content":"found","is_error":false}}]}`,
			[]string{"reasoning: hm", "text: hi", `input look: {"q":1}`, "output: found"}},
		{"ChatGPT", "assistant", `{"id":"m","author":{"role":"assistant","name":null,"metadata":{}},"content":{"content_type":"text","parts":["hi"]},"metadata":{"model_slug":"x"}}`, []string{"text: hi"}},
		{"ChatGPT's thoughts", "assistant", `{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"summary":"s","content":"hm"}]}}`, []string{"data: s", "reasoning: hm"}},
		{"ChatGPT's tools", "tool", `{"author":{"role":"tool","name":"python"},"content":{"content_type":"execution_output","text":"3"}}`, []string{`data: {"role":"tool","name":"python"}`, "output: 3"}},
		{"Claude.ai", "user", `{"uuid":"m","text":"hi","content":[{"type":"text","text":"hi"}],"sender":"human","attachments":[{"file_name":"a.txt","extracted_content":"the file"}]}`,
			[]string{"data: hi", "text: hi", "data: a.txt", "data: the file"}},
		{"Claude.ai without blocks", "user", `{"uuid":"m","text":"hi","content":[],"sender":"human","attachments":[]}`, []string{"text: hi"}},
		{"LibreChat", "assistant", `{"messageId":"m","text":"","content":[{"type":"think","think":"hm"},{"type":"text","text":{"value":"hi"}},{"type":"tool_call","tool_call":{"id":"c","name":"look","args":"{}","output":"found"}}]}`,
			[]string{"reasoning: hm", "text: hi", "input look: {}", "output look: found"}},
		{"DeepSeek", "assistant", `{"files":[],"model":"m","fragments":[{"type":"SEARCH","results":[{"title":"DAG 1"}]},{"type":"THINK","content":"hm"},{"type":"RESPONSE","content":"hi"}]}`,
			[]string{`data: [{"title":"DAG 1"}]`, "reasoning: hm", "text: hi"}},
		{"Grok", "assistant", `{"_id":"m","message":"hi","sender":"grok-4","thinking_trace":"hm","create_time":{"$date":{"$numberLong":"1"}}}`, []string{"text: hi", "reasoning: hm"}},
		{"ShareGPT", "user", `{"from":"human","value":"hi"}`, []string{"text: hi"}},
		{"a call of ShareGPT", "assistant", `{"from":"function_call","value":"{\"name\":\"look\"}"}`, []string{`input: {"name":"look"}`}},
		{"a result of ShareGPT", "user", `{"from":"observation","value":"found"}`, []string{"output: found"}},
		{"an agent's step", "assistant", `{"role":"assistant","content":"hm, look","thought":"hm","action":"look"}`, []string{"text: hm, look", "data: hm", "data: look"}},
		{"an AI SDK result", "tool", `{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"look","output":{"type":"text","value":"found"}},{"type":"tool-result","toolName":"look","output":{"type":"json","value":{"a":1}}}]}`,
			[]string{"output look: found", `output look: {"a":1}`}},
		{"results as blocks", "tool", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"found"}]}`, []string{"output: found"}},
		{"a stored response", "assistant", `{"object":"response","reasoning":{"effort":"high"},"output":[{"type":"reasoning","summary":[]},{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`,
			[]string{"text: hi"}},
		{"metadata is no text", "user", `{"metadata":{"text":"no","content":"` + long + `"},"parts":[{"type":"text","text":"yes","providerMetadata":{"text":"no"}}],"reasoning_effort":"high"}`,
			[]string{`data: {"text":"no","content":"` + long + `"}`, "text: yes", `data: {"text":"no"}`}},
		{"ids and times", "user", `{"id":"m 1","uuid":"a-b","createdAt":"Mon, 5 Jan 2026","content":"hi","usage":{"n":1.5,"tier":null,"requestId":"r_1"},"call_id":"c1"}`,
			[]string{"data: m 1", "text: hi"}},
		{"texts under keys of times", "user", `{"content":"hi","update":"diagnosed with 2 of X","date":"Tue, 6 Jan 2026 10:00:00 GMT","lifetime":"all my life"}`,
			[]string{"text: hi", "data: diagnosed with 2 of X", "data: all my life"}},
		{"texts under unknown keys", "user", `{"title":"Plan","content":"hi","metadata":{"files":[{"name":"x.pdf"}]},"logprobs":{"Secret plan":1},"ids":["a"],"tags":["b"]}`,
			[]string{"data: Plan", "text: hi", `data: {"files":[{"name":"x.pdf"}]}`, `data: {"Secret plan":1}`, `data: ["b"]`}},
		{"an image", "user", `{"content":[{"type":"image_url","image_url":{"url":"https://a/x.png","detail":"low"}},{"type":"text","text":"hi"}]}`, []string{"file: https://a/x.png", "text: hi"}},
		{"an odd text", "user", `{"content":[{"type":"text","text":"\ud800"},{"type":"text","text":"hi"}]}`, []string{`text: "\ud800"`, "text: hi"}},
		{"last type", "user", `{"content":[{"text":"hm","type":"reasoning"}]}`, []string{"reasoning: hm"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			divided, ok := form.Split([]byte(tt.message), tt.role)
			require.True(t, ok)
			require.Equal(t, tt.want, told(divided))
			again, err := form.Join(divided.Form, divided.Extras, bodies(divided))
			require.NoError(t, err)
			require.Equal(t, tt.message, string(again))
		})
	}
}

func TestText(t *testing.T) {
	for message, want := range map[string]string{
		`{"content":"a line\n"}`: "a line\n",
		`{"content":[{"type":"text","text":"a\n"},{"type":"text","text":"b"},{"type":"text","text":"c"}]}`:    "a\nb\nc",
		`{"role":"assistant","content":"","n":1}`:                                                             "",
		`{"note":"` + strings.Repeat("x", 300) + `","content":"","trace":"` + strings.Repeat("y", 300) + `"}`: "",
		`{"role":"assistant","content":[],"id":"m"}`:                                                          "",
		`{"n":1}`: `{"n":1}`,
		`{"uuid":"m","text":"hi","content":[{"type":"text","text":"hi"}],"attachments":[{"extracted_content":"the file"}]}`: "hi",
		`{"from":"function_call","value":"{}"}`:                                                                                 "→ ({})",
		`{"content":[{"type":"tool_use","name":"look","input":{"q":1}}]}`:                                                       `→ look({"q":1})`,
		`{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["hi",{"asset_pointer":"file-service://x"}]}}`: "hi\nfile-service://x",
	} {
		require.Equal(t, want, form.Text([]byte(message), "assistant"), message)
	}
}

// Messages that differ in texts, ids and numbers have the same form.
func TestFormsRepeat(t *testing.T) {
	forms := make(map[string]bool)
	for i := range 100 {
		m := fmt.Sprintf(`{"id":"m%d","role":"user","at":%d.50,"parts":[{"type":"text","text":"said %d"}]}`, i, i*i, i)
		divided, ok := form.Split([]byte(m), "user")
		require.True(t, ok)
		forms[string(divided.Form)] = true
	}
	require.Len(t, forms, 1)
}

// Texts are restored in the escaping styles of common encoders.
func TestStyles(t *testing.T) {
	for name, text := range map[string]string{
		"stringify": `"é \u0001 \b / <a>` + "\u2028" + ` \"x\" \\"`, "go": `"\u003cb\u003e \u0026 é \u2028"`, "python": `"\u00e9 \ud83d\ude00 <a> /"`,
		"php": `"\u00e9 a\/b"`, "php with unicode": `"é a\/b \u2028"`, "jackson": `"\u00E9 <a>"`, "gson": `"\u003d \u0027 é"`, "dotnet": `"\u0022 \u00E9 \u002B \\ \n"`,
	} {
		m := `{"content":` + text + `}`
		divided, ok := form.Split([]byte(m), "user")
		require.True(t, ok, name)
		require.Len(t, divided.Pieces, 1, name)
		require.False(t, divided.Pieces[0].JSON, name)
	}
	// Texts in other styles are kept quoted.
	for name, text := range map[string]string{"lone surrogate": `"\ud800"`, "mixed": `"\u00e9é"`, "needless": `"\u0041"`, "invalid utf-8": "\"a\xffb\""} {
		divided, ok := form.Split([]byte(`{"content":`+text+`}`), "user")
		require.True(t, ok, name)
		require.Equal(t, []form.Piece{{Kind: structure.TextPiece, Body: []byte(text), JSON: true}}, divided.Pieces, name)
	}
}

func TestNotTakenApart(t *testing.T) {
	for name, m := range map[string]string{
		"nothing": "", "no JSON": "hi", "two values": `{} {}`, "cut": `{"content":"a`, "BOM": "\ufeff{}", "control byte": "{\"a\":\"\x0f\"}",
		"too deep": strings.Repeat("[", 600) + strings.Repeat("]", 600), "too many pieces": "[" + strings.Repeat(`{"text":"a"},`, 1001) + `0]`,
		"a form too large": "{" + strings.Repeat(`"`+strings.Repeat("k", 100)+`":true,`, 700) + `"content":"x"}`,
	} {
		_, ok := form.Split([]byte(m), "user")
		require.False(t, ok, name)
	}
	// Values beyond the limit of extras are pieces, and there is space for the name of a tool.
	for _, m := range []string{
		`{"functionCall":{"name":"look","args":{"q":1}},"n":[` + strings.Repeat("1,", 400) + `1]}`,
		`{"functionCall":{"name":"look","args":{"q":1}},"thoughtSignature":"` + strings.Repeat("x", structure.MostExtraBytes-2) + `","a":"b"}`,
	} {
		divided, ok := form.Split([]byte(m), "model")
		require.True(t, ok)
		require.Equal(t, "look", divided.Pieces[0].Name)
		divided.KeepTool()
		u := structure.Usage{Kind: structure.MessageUsage, Form: content.Sum(divided.Form), Extras: divided.Extras}
		require.NoError(t, u.Check())
		again, err := form.Join(divided.Form, divided.Extras, bodies(divided))
		require.NoError(t, err)
		require.Equal(t, m, string(again))
	}
}

func TestJoinRefusesWhatDoesNotGoTogether(t *testing.T) {
	divided, ok := form.Split([]byte(`{"id":"m","content":"hi"}`), "user")
	require.True(t, ok)
	for _, tt := range []struct {
		form           []byte
		extras, pieces [][]byte
	}{
		{divided.Form, divided.Extras, nil}, {divided.Form, nil, bodies(divided)}, {divided.Form, divided.Extras, append(bodies(divided), nil)},
		{divided.Form, append(divided.Extras, nil), bodies(divided)}, {[]byte{0x1f}, nil, [][]byte{nil}}, {[]byte{1}, nil, [][]byte{nil}}, {[]byte{1, 1, 0x10}, nil, [][]byte{nil}}, {[]byte{0x10, 1}, nil, [][]byte{nil, nil}},
	} {
		_, err := form.Join(tt.form, tt.extras, tt.pieces)
		require.ErrorIs(t, err, form.ErrMismatch)
	}
}

// message draws JSON that uses the keys of the formats in any position.
func message() *rapid.Generator[any] {
	texts := rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune{'a', '"', '\\', '\n', '/', '<', 'é', '😀', 0, '\u2028', '\x7f', '\''})),
		rapid.SampledFrom([]string{"text", "reasoning", "tool_use", "tool_result", "tool-x", "data-y", "function_call_output", "base64", "tool", "data:,a", strings.Repeat("y", 300)}))
	keys := rapid.SampledFrom([]string{"id", "type", "role", "name", "content", "text", "parts", "tool_calls", "function", "arguments", "input", "output", "error", "data", "url", "thinking", "reasoning", "signature", "usage", "k", ""})
	scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any](json.Number("1.0")), rapid.Just[any](json.Number("-9223372036854775808")), rapid.Map(texts, func(s string) any { return s }))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 5), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(keys, value(depth-1), 0, 6), func(v map[string]any) any { return v }),
		)
	}
	return value(5)
}

// Every split message can be joined, and the output of common encoders can be split.
func TestSplitAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(rapid.Bool().Draw(t, "escapes"))
		if rapid.Bool().Draw(t, "indented") {
			e.SetIndent(" ", "\t")
		}
		require.NoError(t, e.Encode(message().Draw(t, "message")))
		divided, ok := form.Split(b.Bytes(), rapid.SampledFrom([]string{"user", "tool"}).Draw(t, "role"))
		require.True(t, ok)
		again, err := form.Join(divided.Form, divided.Extras, bodies(divided))
		require.NoError(t, err)
		require.Equal(t, b.String(), string(again))
		for _, p := range divided.Pieces {
			require.True(t, len(p.Body) > 0 || p.Kind != structure.DataPiece, "only missing texts are empty")
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":"a\u00e9","parts":[{"type":"tool-x","input":{},"output":"b"}],"content":1e2}`), "tool")
	f.Add([]byte(`[{"type":"tool_result","content":[{"text":"\/"}]},"`+"\xff"+`"]`), "user")
	f.Fuzz(func(t *testing.T, message []byte, role string) {
		divided, ok := form.Split(message, role)
		if !ok {
			return
		}
		again, err := form.Join(divided.Form, divided.Extras, bodies(divided))
		if err != nil || !bytes.Equal(again, message) {
			t.Fatalf("%v: %q became %q", err, message, again)
		}
	})
}

func FuzzJoin(f *testing.F) {
	f.Add([]byte("{\"id\":\x0f,\"text\":\x13,\"v\":\x0e}"), []byte("a"), []byte("b\xff"))
	f.Fuzz(func(t *testing.T, format, extra, piece []byte) {
		for _, n := range []int{0, 1, 2} {
			_, _ = form.Join(format, [][]byte{extra}[:min(n, 1)], [][]byte{piece, piece}[:n])
		}
	})
}

// A string anywhere is a piece, so that it can be erased: the form and the extras contain only
// strings under the keys of ids, times, kinds and names.
func TestNothingSaidIsAside(t *testing.T) {
	keys := []string{
		"title", "note", "filename", "city", "comment", "data", "url", "image_url", "input", "arguments", "result", "file", "metadata", "annotations", "summary",
		"reasoning", "value", "text", "content", "parts", "tool_calls", "function", "message", "output", "thinking", "source", "providerMetadata", "refusal", "alt", "x",
	}
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		var value func(depth int) string
		value = func(depth int) string {
			n++
			switch rapid.IntRange(0, 6-min(depth, 4)).Draw(t, "value") {
			case 0:
				return "1.5"
			case 1, 2:
				return fmt.Sprintf(`"TOKEN%d%s"`, n, rapid.SampledFrom([]string{"", " and more", "é", "\\n", strings.Repeat("x", 300)}).Draw(t, "rest"))
			case 3:
				return "[" + value(depth+1) + "," + value(depth+1) + "]"
			}
			members := []string{`"type":` + rapid.SampledFrom([]string{`"text"`, `"tool_use"`, `"unknown"`, `"file"`, "1"}).Draw(t, "type")}
			for range rapid.IntRange(1, 4).Draw(t, "members") {
				members = append(members, fmt.Sprintf("%q:%s", rapid.SampledFrom(keys).Draw(t, "key"), value(depth+1)))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		message := value(0)
		divided, ok := form.Split([]byte(message), "user")
		require.True(t, ok)
		require.NotContains(t, string(divided.Form), "TOKEN", message)
		for _, extra := range divided.Extras {
			require.NotContains(t, string(extra), "TOKEN", message)
		}
	})
}

func TestSays(t *testing.T) {
	for raw, want := range map[string]bool{
		``: false, `{}`: false, `{"type":"fragment"}`: false, `{"uuid":"1-2","parentId":null,"timestamp":"2026-01-05T10:00:00Z","n":[1,2]}`: false,
		` {"a":true} `: false, `{"id":"two words"}`: true, `{"type":"two words"}`: true, `{"cwd":"/home/ann"}`: true, `{"name":"Ann"}`: true, `"x"`: true, `no JSON`: true,
		`{"two words":1}`: true, `[` + strings.Repeat("1,", 600) + `1]`: true,
	} {
		require.Equal(t, want, form.Says([]byte(raw)), raw)
	}
}
