package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/engine"
)

func TestNewMessageBytes(t *testing.T) {
	tests := []struct {
		name string
		in   engine.UIMessage
		want string
	}{
		{"documented row",
			engine.UIMessage{ID: "q1", Role: "user", Parts: []engine.Part{engine.TextPart("…")}},
			`{"id":"q1","role":"user","parts":[{"type":"text","text":"…"}]}`},
		{"nothing is escaped for HTML",
			engine.UIMessage{ID: "1", Role: "user", Parts: []engine.Part{engine.TextPart("<a> & \"b\"\n\\")}},
			`{"id":"1","role":"user","parts":[{"type":"text","text":"<a> & \"b\"\n\\"}]}`},
		{"empty text", engine.UIMessage{Role: "user", Parts: []engine.Part{engine.TextPart("")}},
			`{"id":"","role":"user","parts":[{"type":"text","text":""}]}`},
		{"no parts", engine.UIMessage{ID: "1", Role: "assistant", Metadata: json.RawMessage(`{"n": 1}`)},
			`{"id":"1","role":"assistant","parts":[],"metadata":{"n": 1}}`},
		{"tool call", engine.UIMessage{ID: "1", Role: "assistant", Parts: []engine.Part{
			{Type: engine.PartStepStart},
			{Type: "tool-get", ToolCallID: "c1", State: "output-available", Input: json.RawMessage(`{"a":1}`), Output: json.RawMessage(`null`)},
			{Type: engine.PartFile, MediaType: "image/png", URL: "data:,"},
		}},
			`{"id":"1","role":"assistant","parts":[{"type":"step-start"},` +
				`{"type":"tool-get","toolCallId":"c1","state":"output-available","input":{"a":1},"output":null},` +
				`{"type":"file","mediaType":"image/png","url":"data:,"}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.in.Encode()
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

// odd is a message with details that are easily lost.
const odd = ` { "role" : "assistant", "extra":{"b":1,"a":1e2}, "id":"a\u0031" ,
  "parts":[ {"text":"he\u006clo","type":"text","providerMetadata":{"x":[1, 2]}} , {"type":"future","z":0.10},
  7, {"type":"tool-run","toolCallId":"c","state":"output-error","input":{"cmd":"ls -l","n":[ "deep" ]},"errorText":"no such file"} ],
  "metadata":{"t": 1} } ` + "\n"

func TestUntouchedMessageKeepsItsBytes(t *testing.T) {
	for _, in := range []string{
		odd,
		`{}`, `{"id":null,"role":null,"parts":null}`, `{"id":"1","id":"2","parts":[],"parts":[{}]}`,
		`{"id":"\ud800","role":"user","parts":[{"type":"text","text":"\ud83d\ude00\/"}]}`,
		"{\"id\":\"\xff\",\"role\":\"user\"}",
		`{"parts":["text",null,[1],{"type":5},{"type":"text","text":7},{"type":"dynamic-tool","toolName":"x"}]}`,
		`{"content":"an older form","role":"user","id":"1"}`,
	} {
		m, err := engine.DecodeMessage([]byte(in))
		require.NoError(t, err, in)
		out, err := m.Encode()
		require.NoError(t, err, in)
		require.Equal(t, in, string(out))
	}
}

func TestEditsTouchOnlyWhatWasEdited(t *testing.T) {
	const in = `{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":"b"} ], "metadata":{ } }`
	tests := []struct {
		name string
		edit func(*engine.UIMessage)
		want string
	}{
		{"id", func(m *engine.UIMessage) { m.ID = "2" },
			`{ "id":"2", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":"b"} ], "metadata":{ } }`},
		{"text", func(m *engine.UIMessage) { m.Parts[0].Text = "new" },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"new", "k":1e1} , {"type":"text","text":"b"} ], "metadata":{ } }`},
		{"text to nothing", func(m *engine.UIMessage) { m.Parts[1].Text = "" },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":""} ], "metadata":{ } }`},
		{"field added", func(m *engine.UIMessage) { m.Parts[1].State = "done" },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":"b","state":"done"} ], "metadata":{ } }`},
		{"part added", func(m *engine.UIMessage) { m.Parts = append(m.Parts, engine.TextPart("c")) },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":"b"},{"type":"text","text":"c"} ], "metadata":{ } }`},
		{"part removed", func(m *engine.UIMessage) { m.Parts = m.Parts[:1] },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[{"type":"text", "text":"a", "k":1e1}], "metadata":{ } }`},
		{"parts swapped", func(m *engine.UIMessage) { m.Parts[0], m.Parts[1] = m.Parts[1], m.Parts[0] },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text","text":"b"} , {"type":"text", "text":"a", "k":1e1} ], "metadata":{ } }`},
		{"metadata removed", func(m *engine.UIMessage) { m.Metadata = nil },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":"b"} ] }`},
		{"metadata", func(m *engine.UIMessage) { m.Metadata = json.RawMessage(`7`) },
			`{ "id":"1", "x" : [1, 2],  "role":"user", "parts":[ {"type":"text", "text":"a", "k":1e1} , {"type":"text","text":"b"} ], "metadata":7 }`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := engine.DecodeMessage([]byte(in))
			require.NoError(t, err)
			test.edit(&m)
			out, err := m.Encode()
			require.NoError(t, err)
			require.Equal(t, test.want, string(out))
		})
	}
}

func TestRemovedFields(t *testing.T) {
	for in, want := range map[string]string{
		`{"parts":[{"state":"x","type":"t"}]}`:                          `{"parts":[{"type":"t"}]}`,
		`{"parts":[{"type":"t" , "state":"x"}]}`:                        `{"parts":[{"type":"t"}]}`,
		`{"parts":[{"state":"y","type":"t", "state":"x","state":"z"}]}`: `{"parts":[{"type":"t"}]}`,
		`{"parts":[{ "state":"x" }]}`:                                   `{"parts":[{  }]}`,
	} {
		m, err := engine.DecodeMessage([]byte(in))
		require.NoError(t, err)
		m.Parts[0].State = ""
		out, err := m.Encode()
		require.NoError(t, err)
		require.Equal(t, want, string(out))
	}
}

func TestBadMessages(t *testing.T) {
	for _, in := range []string{``, `{`, `[]`, `"x"`, `{"id":1}`, `{"role":[]}`, `{"parts":{}}`, `{} {}`} {
		_, err := engine.DecodeMessage([]byte(in))
		require.ErrorIs(t, err, engine.ErrBadMessage, in)
	}
	notAnObject, err := engine.DecodeMessage([]byte(`{"parts":[7]}`))
	require.NoError(t, err)
	notAnObject.Parts[0].Text = "x"
	for _, m := range []engine.UIMessage{
		notAnObject,
		{Parts: []engine.Part{{Text: "no type"}}},
		{Parts: []engine.Part{{Type: "tool-x", Input: json.RawMessage(`{`)}}},
		{Metadata: json.RawMessage(`nope`)},
	} {
		_, err := m.Encode()
		require.ErrorIs(t, err, engine.ErrBadMessage)
	}
}

func TestDecodedMessageSharesNothing(t *testing.T) {
	in := []byte(`{"id":"1","metadata":{"a":1},"parts":[{"type":"tool-x","input":{"b":2}}]}`)
	want := string(in)
	m, err := engine.DecodeMessage(in)
	require.NoError(t, err)
	clear(in)
	out, err := m.Encode()
	require.NoError(t, err)
	require.Equal(t, want, string(out))
	require.JSONEq(t, `{"b":2}`, string(m.Parts[0].Input))
}

func TestMessageText(t *testing.T) {
	m, err := engine.DecodeMessage([]byte(`{"parts":[
		{"type":"text","text":"Hello "},{"type":"reasoning","text":"thinking"},
		{"type":"tool-run","input":{"cmd":"ls \"x\"","n":1},"output":[{"file":"a.txt"},"b: c",true]},
		{"type":"dynamic-tool","toolName":"t","errorText":"broken"},
		{"type":"file","filename":"plan.pdf","url":"data:xyz"},
		{"type":"data-x","data":{"secret":"hidden"}},
		{"type":"text","text":"world"}]}`))
	require.NoError(t, err)
	require.Equal(t, "Hello world", m.Text())

	name, ok := m.Parts[2].Tool()
	require.True(t, ok)
	require.Equal(t, "run", name)
	name, ok = m.Parts[3].Tool()
	require.True(t, ok)
	require.Equal(t, "t", name)
	_, ok = m.Parts[0].Tool()
	require.False(t, ok)
	name, ok = m.Parts[5].DataName()
	require.True(t, ok)
	require.Equal(t, "x", name)
}

func TestMessageAsJSONValue(t *testing.T) {
	var rows []engine.UIMessage
	require.NoError(t, json.Unmarshal([]byte(`[`+odd+`]`), &rows))
	out, err := json.Marshal(rows)
	require.NoError(t, err)
	require.JSONEq(t, `[`+odd+`]`, string(out))
	require.ErrorIs(t, json.Unmarshal([]byte(`{"id":1}`), &rows[0]), engine.ErrBadMessage)
}

func TestEditedMessageReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := engine.DecodeMessage([]byte(odd))
		require.NoError(t, err)
		m.ID = rapid.String().Draw(t, "id")
		text := rapid.String()
		m.Parts[0].Text = text.Draw(t, "text")
		m.Parts[3].ErrorText = text.Draw(t, "error")
		for _, added := range rapid.SliceOfN(text, 0, 3).Draw(t, "added") {
			m.Parts = append(m.Parts, engine.TextPart(added))
		}
		out, err := m.Encode()
		require.NoError(t, err)
		require.True(t, json.Valid(out))
		back, err := engine.DecodeMessage(out)
		require.NoError(t, err)
		require.Equal(t, m.ID, back.ID)
		require.Equal(t, len(m.Parts), len(back.Parts))
		for i := range m.Parts {
			require.Equal(t, m.Parts[i].Text, back.Parts[i].Text)
			require.Equal(t, m.Parts[i].ErrorText, back.Parts[i].ErrorText)
			require.Equal(t, m.Parts[i].Input, back.Parts[i].Input)
		}
		require.Contains(t, string(out), `"extra":{"b":1,"a":1e2}`)
		require.Contains(t, string(out), `"providerMetadata":{"x":[1, 2]}`)
	})
}

func FuzzDecodeMessage(f *testing.F) {
	for _, seed := range []string{odd, `{}`, `{"id":"1","role":"user","parts":[{"type":"text","text":"x"}]}`, `{"parts":[[],{},"\""]}`} {
		f.Add([]byte(seed), "text")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		m, err := engine.DecodeMessage(data)
		if err != nil {
			require.ErrorIs(t, err, engine.ErrBadMessage)
			return
		}
		out, err := m.Encode()
		require.NoError(t, err)
		require.Equal(t, string(data), string(out))
		_ = m.Text()

		m.ID, m.Metadata = text+"!", nil
		m.Parts = append(m.Parts, engine.TextPart(text))
		out, err = m.Encode()
		require.NoError(t, err)
		back, err := engine.DecodeMessage(out)
		require.NoError(t, err)
		require.Len(t, back.Parts, len(m.Parts))
		require.Nil(t, back.Metadata)
	})
}
