package message_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

// outline lists the parts of messages.
func outline(history []message.Message) string {
	var out []string
	for _, m := range history {
		var parts []string
		for i := range m.Parts {
			p := &m.Parts[i]
			s := p.Kind.String() + " " + p.String()
			if p.CallID != "" {
				s += " #" + p.CallID
			}
			parts = append(parts, s)
		}
		out = append(out, m.Role+": "+strings.Join(parts, " | "))
	}
	return strings.Join(out, "\n")
}

// said is outline, independent of how assistant messages are split.
func said(history []message.Message) string {
	return strings.ReplaceAll(outline(history), "\nassistant: ", " | ")
}

func TestDecode(t *testing.T) {
	for _, test := range []struct{ body, mediaType, role, want string }{
		{"hi", "text/plain", "user", "user: text hi"},
		{"hi", "", "tool", "tool: result hi"},
		{"ab", "image/png", "user", "user: file [image/png]"},
		{"{broken", "application/json", "user", "user: text {broken"},
		{`"hi"`, "application/json; charset=utf-8", "user", "user: text hi"},
		{`null`, "application/json", "user", "user: "},
		{`12`, "application/json", "user", "user: text 12"},
		{`{"c":3}`, "application/json", "tool", `tool: result {"c":3}`},
		{`{"c":3}`, "application/json", "user", `user: data {"c":3}`},
		{`{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`, "application/json", "", "assistant: text a | call [call of f] {} #1"},
		{`{"content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`, "application/json", "assistant", "assistant: call [call of f] {} #1"},
		{`{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "application/json", "", "tool: result a\n\nb #1"},
		{`[{"role":"user","content":"a"},{"type":"function_call","name":"f","arguments":"[1]","call_id":"2"},{"type":"function_call_output","call_id":"2","output":"b"}]`,
			"application/json", "user", "user: text a\nassistant: call [call of f] [1] #2\ntool: result b #2"},
		{`[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"3","name":"f","input":{"a":1}}]`, "application/json", "assistant", `assistant: reasoning hm | call [call of f] {"a":1} #3`},
		{`[{"type":"tool_result","tool_use_id":"3","content":"x"},{"type":"text","text":"and?"}]`, "application/json", "user", "user: result x #3 | text and?"},
		{`{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"tool-f","toolCallId":"4","state":"output-error","input":{},"errorText":"no"}]}`, "application/json", "",
			`assistant: data {"type":"step-start"} | call [call of f] {} #4 | result no #4`},
		{`{"id":"m","role":"assistant","parts":[{"type":"tool-call","toolCallId":"4","state":"output-available","input":{},"output":{"a":1}}]}`, "application/json", "", `assistant: call [call of call] {} #4 | result {"a":1} #4`},
		{`{"files":[],"fragments":[{"type":"SEARCH","results":[{"url":"u"}]},{"type":"THINK","content":"hm"},{"type":"RESPONSE","content":"hi"}]}`, "application/json", "assistant",
			`assistant: call [call of search] {} | result [{"url":"u"}] | reasoning hm | text hi`},
		{`{"fragments":[{"type":"REQUEST","content":"hi"}]}`, "application/json", "user", "user: text hi"},
		{`{"fragments":[]}`, "application/json", "assistant", "assistant: text "},
		{`{"_id":"m","sender":"grok-4","message":"hi","thinking_trace":"hm","generated_image_urls":["https://x/y.png",7]}`, "application/json", "assistant",
			"assistant: reasoning hm | text hi | file [image/png https://x/y.png]"},
		{`{"_id":"m","sender":"human","message":""}`, "application/json", "user", "user: text "},
		{`{"type":"assistant","uuid":"u","message":{"role":"assistant","content":[{"type":"text","text":"a"}]}}`, "application/json", "user", "assistant: text a"},
		{`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}}`, "application/json", "", "user: text a"},
		{`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}`, "application/json", "", "assistant: reasoning a\n\nb"},
		{`{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["a","b"]}}`, "application/json", "", "assistant: text a | text b"},
		{`{"author":{"role":"user"},"content":{"parts":["x"]}}`, "application/json", "", "user: text x"},
		{`{"author":{"role":"tool","name":"t"},"content":{"parts":["x",{"parts":["y"]}]}}`, "application/json", "", "tool: result x\n\ny"},
		{`{"role":"user","content":{"parts":[]}}`, "application/json", "", "user: "},
		{`{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`, "application/json", "", "model: call [call of f] {}"},
		{`{"name":"f","arguments":{"a":1}}`, "application/json", "assistant", `assistant: call [call of f] {"a":1}`},
		{`{"from":"human","value":"a"}`, "application/json", "user", "user: text a"},
		{`{"uuid":"u","text":"a","content":[],"sender":"human"}`, "application/json", "user", "user: text a"},
		{`{"uuid":"u","text":"a b","content":[{"type":"thinking","thinking":"hm"},{"start_timestamp":"t","type":"text","text":"a","citations":[]}],"sender":"assistant","attachments":[{"extracted_content":"x"}]}`,
			"application/json", "", "assistant: reasoning hm | text a"},
		{`{"id":"m","author":{"role":"tool","name":"python","metadata":{}},"create_time":1.5,"content":{"content_type":"execution_output","text":"3"},"weight":1.0,"recipient":"all"}`,
			"application/json", "", "tool: result 3"},
		{`{"id":"m","parentId":null,"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}`, "application/json", "", "assistant: text  | call [call of look] {} #c1"},
		{`{"id":"m","parentId":null,"childrenIds":["n"],"role":"assistant","content":"a","model":"x","timestamp":1}`, "application/json", "", "assistant: text a"},
		{`{"messageId":"m","parentMessageId":"0","isCreatedByUser":true,"text":"a","sender":"User"}`, "application/json", "", "user: text a"},
		{`{"messageId":"m","isCreatedByUser":false,"text":"","content":[{"type":"think","think":"hm"},{"type":"text","text":{"value":"a"}},{"type":"tool_call","tool_call":{"id":"c","name":"f","args":"{\"b\":1}","output":"d"}}]}`,
			"application/json", "", `assistant: reasoning hm | text a | call [call of f] {"b":1} #c | result d #c`},
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c","name":"ls","arguments":{"path":"."}}],"stopReason":"toolUse"}`, "application/json", "", `assistant: reasoning hm | call [call of ls] {"path":"."} #c`},
		{`{"role":"toolResult","toolCallId":"c","toolName":"ls","content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":true}`, "application/json", "tool", "tool: result a\n\n[image/png] #c"},
		{`{"role":"bashExecution","command":"make","output":"ok\n","exitCode":2,"cancelled":false}`, "application/json", "bashExecution", "bashExecution: text make | text ok\n"},
		{`{"type":"compaction","id":"a","parentId":"b","summary":"We began.","firstKeptEntryId":"c","tokensBefore":5}`, "application/json", "system", "system: text We began."},
		{`{"type":"branch_summary","id":"a","parentId":"b","summary":"We left.","fromId":"c"}`, "application/json", "system", "system: text We left."},
		{`{"type":"custom_message","customType":"x","id":"a","parentId":"b","content":"Remember.","display":true}`, "application/json", "custom", "custom: text Remember."},
		{`{"messageId":"m","model":"x","content":"a","toolRequests":[{"toolCallId":"c","name":"view","arguments":{"path":"b"},"type":"function"}],"reasoningText":"hm"}`, "application/json", "assistant", `assistant: reasoning hm | text a | call [call of view] {"path":"b"} #c`},
		{`{"messageId":"m","content":"a","toolRequests":[]}`, "application/json", "assistant", "assistant: text a"},
		{`{"toolCallId":"c","success":true,"result":{"content":"a","detailedContent":"b"},"toolTelemetry":{}}`, "application/json", "tool", "tool: result a #c"},
		{`{"toolCallId":"c","success":false,"error":{"message":"no","code":"failure"}}`, "application/json", "tool", "tool: result no #c"},
		{`{"content":"a","transformedContent":"<now/>a","attachments":[]}`, "application/json", "user", "user: text a"},
		{`{"id":"g","timestamp":"t","type":"gemini","content":"a","thoughts":[{"subject":"S","description":"d"}],"toolCalls":[{"id":"c","name":"ls","args":{"path":"."},"result":[{"functionResponse":{"id":"c","name":"ls","response":{"output":"x"}}}],"status":"success"},{"id":"e","name":"ls","args":{},"status":"error","resultDisplay":"no"},{"id":"f","name":"ls","args":{},"status":"executing"}]}`, "application/json", "assistant",
			"assistant: reasoning S | reasoning d | text a | call [call of ls] {\"path\":\".\"} #c | result x #c | call [call of ls] {} #e | result no #e | call [call of ls] {} #f"},
		{`{"id":"u","timestamp":"t","type":"user","content":[{"text":"a"}]}`, "application/json", "user", "user: text a"},
		{`{"role":"user","parts":[{"functionResponse":{"id":"c","name":"ls","response":{"error":"no"}}}]}`, "application/json", "tool", "user: result no #c"},
		{`{"text":"a b","parts":[{"range":{},"text":"a","kind":"text"},{"text":" b","kind":"text"}]}`, "application/json", "user", "user: text a b"},
		{`[{"kind":"thinking","value":"hm"},{"value":"a","supportThemeIcons":false},{"kind":"toolInvocationSerialized","toolCallId":"c","toolId":"run","isComplete":true,"resultDetails":{"input":"{\"x\":1}","output":[{"type":"embed","isText":true,"value":"y"}],"isError":false}}]`, "application/json", "assistant",
			`assistant: reasoning hm | text a | call [call of run] {"x":1} #c | result y #c`},
		{`{"step_index":1,"source":"MODEL","type":"PLANNER_RESPONSE","content":"","tool_calls":[{"name":"view_file","args":{"AbsolutePath":"\"/x/a.go\"","EndLine":"50","toolAction":"\"Look\""}}]}`, "application/json", "assistant",
			`assistant: call [call of view_file] {"AbsolutePath":"/x/a.go","EndLine":50,"toolAction":"Look"}`},
		{`{"step_index":1,"source":"MODEL","type":"PLANNER_RESPONSE","content":"","tool_calls":[{"name":"find","args":{"Query":"50","Path":"/x"}}]}`, "application/json", "assistant",
			`assistant: call [call of find] {"Query":"50","Path":"/x"}`},
		{`[{"kind":"mcpServersStarting","didStartServerIds":[]},{"kind":"progressTaskSerialized","content":{"value":"Choosing tools","uris":{}},"progress":[]},{"kind":"inlineReference","inlineReference":{"uri":{"$mid":1,"path":"/x/b.go","scheme":"file"},"range":{}}},{"kind":"textEditGroup","uri":{"$mid":1,"path":"/x/a.md","scheme":"file"},"edits":[[{"text":"# A","range":{}}],[],[{"text":"\nb","range":{}}]],"done":true}]`, "application/json", "assistant",
			`assistant: text Choosing tools | text /x/b.go | call [call of textEditGroup] {"path":"/x/a.md","content":"# A\nb"} | result `},
		{`[{"kind":"toolInvocationSerialized","toolCallId":"c","toolId":"read","invocationMessage":{"value":"Reading"},"isComplete":false}]`, "application/json", "assistant", "assistant: call [call of read] Reading #c"},
		{`{"info":{"role":"assistant","parentID":"u","modelID":"x"},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"tool","tool":"read","callID":"c","state":{"status":"completed","input":{"filePath":"a"},"output":"b"}},{"type":"tool","tool":"bash","callID":"d","state":{"status":"error","input":{},"error":"no"}},{"type":"text","text":"a"},{"type":"step-finish"}]}`, "application/json", "",
			`assistant: reasoning hm | call [call of read] {"filePath":"a"} #c | result b #c | call [call of bash] {} #d | result no #d | text a`},
		{`{"message_id":"m","parent_id":null,"text":"a","role":"prompter","lang":"en","labels":{"name":["x"],"value":[1]}}`, "application/json", "", "user: text a"},
		{`{"from":"gpt","value":"a"}`, "application/json", "user", "assistant: text a"},
		{`{"from":"bard","value":"a"}`, "application/json", "assistant", "assistant: text a"},
		{`{"from":"narrator","value":"a"}`, "application/json", "", "narrator: text a"},
		{`{"from":"function_call","value":"{\"name\": \"f\", \"arguments\": {\"b\": 1}}"}`, "application/json", "", `assistant: call [call of f] {"b": 1}`},
		{`{"from":"function_call","value":"[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]"}`, "application/json", "", `assistant: call [call of f] {} | call [call of g] {}`},
		{`{"from":"function_call","value":"not JSON"}`, "application/json", "", "assistant: text not JSON"},
		{`{"step_index":1,"type":"PLANNER_RESPONSE","tool_calls":[{"name":"run_command","args":{"CommandLine":"ls","Wait":5}}]}`, "application/json", "assistant", `assistant: call [call of run_command] {"CommandLine":"ls","Wait":5}`},
		{`{"step_index":1,"type":"PLANNER_RESPONSE","tool_calls":[{"name":"run_command","args":{"CommandLine":"\"ls \\\"a\\\"\"","Wait":"5","Code":"\"import\n<truncated 7 bytes>"}}]}`, "application/json", "assistant",
			`assistant: call [call of run_command] {"CommandLine":"ls \"a\"","Wait":5,"Code":"\"import\n<truncated 7 bytes>"}`},
		{`{"step_index":1,"type":"PLANNER_RESPONSE","tool_calls":[{"name":"ask","args":{"Question":"\"a\"","toolAction":"Asking"}},{"name":"end","args":{}}]}`, "application/json", "assistant",
			`assistant: call [call of ask] {"Question":"\"a\"","toolAction":"Asking"} | call [call of end] {}`},
		{`{"from":"observation","value":"3"}`, "application/json", "", "tool: result 3"},
		{`{"from":"human","value":7}`, "application/json", "", "user: data 7"},
		{`{"role":"tool","content":[],"tool_call_id":"c"}`, "application/json", "", "tool: result  #c"},
		{`{"role":"tool","content":null}`, "application/json", "", "tool: result "},
		{`{"role":"tool","content":"a","agent":"main","tool_call_ids":["c"]}`, "application/json", "", "tool: result a #c"},
		{`{"parts":[{"type":"tool_result","name":"f","output":"a","tool_call_id":"c"}]}`, "application/json", "tool", "tool: result a #c"},
	} {
		require.Equal(t, test.want, outline(message.Decode([]byte(test.body), test.mediaType, test.role)), test.body)
	}
}

// A conversation with calls is converted from every dialect to every other.
func TestCallsAndResults(t *testing.T) {
	same := map[message.Dialect][]string{
		message.OpenAI: {
			`{"role":"user","content":"weather?"}`,
			`{"role":"assistant","content":"Looking.","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]}`,
			`{"role":"tool","content":"3 degrees","tool_call_id":"c1"}`,
			`{"role":"assistant","content":"Cold."}`,
		},
		message.Responses: {
			`{"role":"user","content":"weather?"}`,
			`{"type":"message","role":"assistant","content":"Looking."}`,
			`{"type":"function_call","call_id":"c1","name":"weather","arguments":"{\"city\":\"Oslo\"}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"3 degrees"}`,
			`{"role":"assistant","content":"Cold."}`,
		},
		message.Anthropic: {
			`{"role":"user","content":"weather?"}`,
			`{"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"weather","input":{"city":"Oslo"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"3 degrees"}]}`,
			`{"role":"assistant","content":"Cold."}`,
		},
		message.UI: {
			`{"id":"message-1","role":"user","parts":[{"type":"text","text":"weather?"}]}`,
			`{"id":"message-2","role":"assistant","parts":[{"type":"text","text":"Looking."},{"type":"tool-weather","toolCallId":"c1","state":"output-available","input":{"city":"Oslo"},"output":"3 degrees"}]}`,
			`{"id":"message-4","role":"assistant","parts":[{"type":"text","text":"Cold."}]}`,
		},
	}
	for from, items := range same {
		for to, want := range same {
			out := encode(t, to, decodeAll(items, ""))
			require.Empty(t, out.Losses, "%s from %s", to, from)
			require.NoError(t, messagetest.Check(to, out.Items))
			require.Equal(t, said(decodeAll(want, "")), said(decodeAll(texts(out.Items), "")), "%s from %s", to, from)
			if from == message.OpenAI {
				require.Equal(t, want, texts(out.Items))
			}
		}
	}
}

func TestLosses(t *testing.T) {
	text := func(s string) string { return `{"role":"user","content":"` + s + `"}` }
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, test := range []struct {
		name  string
		to    message.Dialect
		items []string
		want  []string
		loss  string
	}{
		{"a call in the middle", message.OpenAI, []string{call, text("go on")}, []string{`{"role":"assistant","content":"[call of f] {}"}`, text("go on")}, "0.0 a call without a result: written as text"},
		{"a call at the end", message.OpenAI, []string{text("go"), call}, []string{text("go"), call}, ""},
		{"a result alone", message.Anthropic, []string{`{"role":"tool","tool_call_id":"x","content":"3"}`}, []string{`{"role":"user","content":"[result of a tool] 3"}`}, "0.0 a result without a call: written as text of the user"},
		{"a text between", message.OpenAI, []string{call, text("wait"), `{"role":"tool","tool_call_id":"c1","content":"3"}`},
			[]string{call, `{"role":"tool","tool_call_id":"c1","content":"3"}`, text("wait")}, ""},
		{"calls of two messages", message.OpenAI, []string{call, strings.ReplaceAll(call, "c1", "c2"), `{"role":"tool","tool_call_id":"c2","content":"3"}`, `{"role":"tool","tool_call_id":"c1","content":"4"}`},
			[]string{`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"c2","content":"3"}`, `{"role":"tool","tool_call_id":"c1","content":"4"}`}, ""},
		{"system inside", message.Anthropic, []string{text("a"), `{"role":"system","content":"b"}`}, []string{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`}, "1.-1 no system messages within a conversation: sent as user"},
		{"the assistant first", message.Anthropic, []string{`{"role":"assistant","content":"a "}`}, []string{`{"role":"user","content":"(The assistant begins.)"}`, `{"role":"assistant","content":"a"}`}, "0.0 no space at the end of a last text of the assistant: left out"},
		{"unknown members", message.OpenAI, []string{`{"role":"user", "content":"a" ,"weight":1, "id":"x"}`}, []string{`{"role":"user", "content":"a"}`}, "0.-1 no place for weight"},
		{"no ids", message.Responses, []string{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"3"}`},
			[]string{`{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"call_1","output":"3"}`}, ""},
		{"a name of a tool", message.OpenAI, []string{text("a"), strings.ReplaceAll(call, `"f"`, `"my tool"`)}, []string{text("a"), strings.ReplaceAll(call, `"f"`, `"my_tool"`)}, `1.0 no tool "my tool": called my_tool`},
		{"a placeholder", message.UI, []string{`{"id":"1","role":"user","parts":[{"type":"file","mediaType":"image/png","url":"lineage:content/1"}]}`}, []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"[image/png]"}]}`}, "0.0 no place for image/png there: written as text"},
		{"half a character", message.OpenAI, []string{`{"role":"user","content":"\ud83d"}`}, []string{`{"role":"user","content":"` + "\ufffd" + `"}`}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := encode(t, test.to, decodeAll(test.items, ""))
			require.Equal(t, test.want, texts(out.Items))
			require.NoError(t, messagetest.Check(test.to, out.Items))
			if test.loss == "" {
				require.Empty(t, out.Losses)
				return
			}
			l := out.Losses[0]
			require.Equal(t, test.loss, fmt.Sprintf("%d.%d %s", l.Message, l.Part, l.Reason))
		})
	}
	_, err := message.Encode("morse", nil)
	require.ErrorIs(t, err, message.ErrUnknownDialect)
}

// For Anthropic, the system prompt is separate.
func TestSystemPrompts(t *testing.T) {
	out := encode(t, message.Anthropic, decodeAll([]string{`{"role":"system","content":"a"}`, `{"role":"developer","content":"b"}`, `{"role":"user","content":"c"}`}, ""))
	require.Equal(t, []string{"a", "b"}, out.System)
	require.Equal(t, []string{`{"role":"user","content":"c"}`}, texts(out.Items))
	require.Empty(t, out.Losses)
}

func FuzzDecode(f *testing.F) {
	for _, odd := range messagetest.Oddities() {
		f.Add([]byte(odd), "application/json", "user")
		f.Add([]byte(odd), "application/json", "tool")
	}
	f.Add([]byte("\xff"), "image/png", "")
	f.Fuzz(func(t *testing.T, body []byte, mediaType, role string) {
		history := message.Decode(body, mediaType, role)
		if len(history) == 0 {
			t.Fatal("a message is lost")
		}
		for _, to := range message.Dialects() {
			out := encode(t, to, history)
			if err := messagetest.Check(to, out.Items); err != nil {
				t.Fatalf("%s: %v: %q", to, err, out.Items)
			}
		}
	})
}

// A list of parts says the same whether the format states what it is a list of or not, at any depth.
func TestPartsWithoutAType(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		var list func(depth int) any
		var want []string
		list = func(depth int) any {
			parts := []any{}
			for range rapid.IntRange(1, 3).Draw(t, "parts") {
				n++
				text := fmt.Sprint("text ", n)
				switch kind := rapid.IntRange(0, 3).Draw(t, "part"); {
				case kind == 0 && depth < 3:
					parts = append(parts, list(depth+1))
					continue
				case kind == 1:
					parts = append(parts, map[string]any{"text": text})
				case kind == 2:
					parts = append(parts, map[string]any{"content_type": "text", "text": text})
				default:
					parts = append(parts, text)
				}
				want = append(want, "text "+text)
			}
			o := map[string]any{"parts": parts}
			if kind := rapid.SampledFrom([]string{"", "text", "multimodal_text", "code", "of next year"}).Draw(t, "content type"); kind != "" {
				o["content_type"] = kind
			}
			return o
		}
		object := map[string]any{"content": list(0)}
		if rapid.Bool().Draw(t, "author") {
			object["author"] = map[string]any{"role": "user"}
		} else {
			object["role"] = "user"
		}
		body, err := json.Marshal(object)
		require.NoError(t, err)
		history := message.Decode(body, "application/json", "")
		require.Equal(t, "user: "+strings.Join(want, " | "), outline(history), string(body))
		for _, to := range message.Dialects() {
			encoded, err := message.Encode(to, history)
			require.NoError(t, err)
			sent := fmt.Sprintf("%s", encoded.Items)
			for _, text := range want {
				require.Contains(t, sent, strings.TrimPrefix(text, "text "), "%v of %s", to, body)
			}
		}
	})
}
