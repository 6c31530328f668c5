package messagetest

import (
	"encoding/json"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/message"
)

// Body is a stored message.
type Body struct{ Bytes, Type, Role string }

// Wild draws a history as it may be in a store: in several dialects, with messages missing,
// duplicated, changed, erased, or not messages at all.
func Wild(t *rapid.T) []Body {
	var out []Body
	for range rapid.IntRange(1, 3).Draw(t, "sources") {
		d := rapid.SampledFrom(message.Dialects()).Draw(t, "dialect")
		for _, item := range History(t, d) {
			body := Body{Bytes: item, Type: "application/json", Role: role(t)}
			switch rapid.IntRange(0, 9).Draw(t, "what happened") {
			case 0:
				continue
			case 1:
				out = append(out, body)
			case 2, 3:
				body.Bytes = mutated(t, item)
			case 4:
				body.Bytes = rapid.SampledFrom(oddities).Draw(t, "oddity")
			case 5:
				body = Body{Bytes: rapid.String().Draw(t, "text"), Type: "text/plain", Role: role(t)}
			case 6:
				if len(out) > 1 { // another order
					i := rapid.IntRange(0, len(out)-1).Draw(t, "place")
					out = slices.Insert(out, i, body)
					continue
				}
			}
			out = append(out, body)
		}
	}
	return out
}

func role(t *rapid.T) string {
	return rapid.SampledFrom([]string{"user", "assistant", "system", "tool", "developer", "narrator", "", "USER"}).Draw(t, "role")
}

// Oddities returns bodies that may be in a store and that no API accepts.
func Oddities() []string { return slices.Clone(oddities) }

var oddities = []string{
	`null`, `{}`, `[]`, `7`, `true`, `""`, `" "`, `{"unknown":["shape"]}`, `[[1],{"a":2}]`, `not JSON`, `{"role":"user"`, "\xff", `"\ud800"`,
	`{"role":"user","content":""}`, `{"role":"assistant","content":null}`, `{"role":"assistant","content":[]}`, `{"role":"user","content":" \n"}`,
	`{"role":"assistant","tool_calls":[]}`, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"no name!","arguments":"{broken"}}]}`,
	`{"role":"assistant","content":null,"function_call":{"name":"old","arguments":"{}"}}`, `{"role":"function","name":"old","content":"1"}`,
	`{"role":"tool","tool_call_id":"nobody","content":"x"}`, `{"role":"tool","content":"x"}`, `{"role":"tool","tool_call_id":"call-1_x","content":[]}`,
	`{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"\ud83d"},{"type":"future","x":1}]}`,
	`{"role":"user","role":"assistant","content":"twice"}`, `{"role":"user","content":"x","weight":1,"id":"y"}`,
	`{"role":"user","content":[{"type":"file","file":{"file_id":"f"}},{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"image_url","image_url":"file:///etc/passwd"}]}`,
	`{"type":"function_call","name":"shell","arguments":"[1]","call_id":"` + long + `"}`, `{"type":"function_call_output","call_id":"` + long + `","output":"ok"}`,
	`{"type":"reasoning","summary":[],"encrypted_content":"x"}`, `{"type":"reasoning","id":"rs_9","summary":[]}`, `{"type":"item_reference","id":"msg_1"}`,
	`{"type":"local_shell_call","call_id":"sh","status":"completed","action":{"type":"exec","command":["ls"]}}`,
	`{"type":"custom_tool_call_output","call_id":"sh","output":"ok"}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"from a rollout"}]}`,
	`{"type":"assistant","uuid":"u","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi","citations":null},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}],"stop_reason":null,"usage":{"input_tokens":1}}}`,
	`[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a.go"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}],"is_error":true}]`,
	`[{"type":"thinking","thinking":"hm","signature":"s"}]`, `[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"bad id!","name":"","input":7}]`,
	`[{"type":"tool_result","tool_use_id":"bad id!","content":""}]`, `[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]`,
	`{"id":"1","role":"user","parts":[]}`, `{"id":"1","role":"data","parts":[{"type":"text","text":"x"}]}`, `{"parts":["text",null,[1],{"type":5},{"type":"text","text":7}]}`,
	`{"role":"assistant","parts":[{"type":"tool-x","toolCallId":"dup","state":"input-streaming","input":{}},{"type":"tool-x","toolCallId":"dup","state":"output-denied","input":{},"approval":{"id":"a","approved":false}}]}`,
	`{"id":"p","role":"user","parts":[{"type":"file","mediaType":"image/png","url":"lineage:content/abc"},{"type":"file","mediaType":"text/plain","url":"data:text/plain,a%20b"}]}`,
	`{"content_type":"multimodal_text","parts":["See ",{"content_type":"image_asset_pointer","asset_pointer":"file-service://abc"}]}`,
	`{"author":{"role":"tool","name":"browser"},"content":{"content_type":"code","language":"unknown","text":"search()"},"id":"x"}`,
	`{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{"a":1}}}]}`, `{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"b":2}}}]}`,
	`{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{"content":"x","type":"ai","tool_calls":[{"name":"f","args":{},"id":"lc1"}]}}`,
	`{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"y","tool_call_id":"lc1"}}`,
	`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"v","toolName":"t","input":{"a":1}}]}`, `{"role":"tool","content":[{"type":"tool-result","toolCallId":"v","toolName":"t","output":{"type":"json","value":{"b":2}}}]}`,
	`{"role":"assistant","content":"trailing space \n"}`, `{"name":"f","arguments":{"a":1}}`,
	`{"uuid":"u","text":"a","content":[{"type":"text","text":"a","citations":[]},{"type":"tool_use","id":"t","name":"f","input":{}}],"sender":"assistant"}`, `{"uuid":7,"sender":"human"}`,
	`{"messageId":"m","text":"","content":[{"type":"tool_call","tool_call":{"id":"c","name":"f","args":"{}","output":"d"}},{"type":"tool_call","tool_call":{"id":"c"}}]}`,
	`{"id":"m","parentId":null,"role":"assistant","content":[],"parts":[]}`, `{"message_id":"m","text":null,"role":"prompter"}`, `{"message_id":"m","text":"a","role":"prompter"}`,
	`{"from":"function_call","value":"{\"from\":\"function_call\",\"value\":\"{}\"}"}`, `{"from":"function_call","value":"[{\"name\":\"f\",\"arguments\":{}},{\"role\":\"user\",\"content\":\"x\"}]"}`,
	`{"from":"observation","value":{"a":1}}`, `{"from":"gpt","value":"\ud800"}`, `{"author":{},"content":null}`, `{"role":"tool","tool_call_ids":["call-1_x",7],"content":"3"}`,
}

const long = "a-very-long-id-of-a-call-that-no-api-would-accept-because-it-is-much-too-long-for-any"

// mutated changes random values in a message.
func mutated(t *rapid.T, item string) string {
	var v any
	if json.Unmarshal([]byte(item), &v) != nil {
		return item
	}
	b, err := json.Marshal(mutate(t, v, rapid.IntRange(1, 3).Draw(t, "mutations")))
	if err != nil {
		return item // a number that Go cannot hold
	}
	return string(b)
}

func mutate(t *rapid.T, v any, n int) any {
	if n == 0 {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return v
		}
		key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "key")
		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			delete(v, key)
		case 1:
			v[key] = nil
		case 2:
			v["unheard_of"] = map[string]any{"a": 1}
		case 3:
			v[key] = rapid.SampledFrom([]any{"", " ", 7, []any{}, map[string]any{}, true, "tool", "assistant", "text", long}).Draw(t, "other")
		default:
			v[key] = mutate(t, v[key], n)
			return v
		}
		return mutate(t, v, n-1)
	case []any:
		if len(v) == 0 {
			return []any{map[string]any{"type": "new"}}
		}
		i := rapid.IntRange(0, len(v)-1).Draw(t, "element")
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			return mutate(t, slices.Delete(v, i, i+1), n-1)
		case 1:
			return append(v, v[i])
		}
		v[i] = mutate(t, v[i], n)
		return v
	case string:
		return rapid.SampledFrom([]any{"", " ", v + " ", 3, nil, long, "tool_result", "call-1_x"}).Draw(t, "text")
	}
	return "x"
}

// Decoded reads bodies as a history.
func Decoded(bodies []Body) []message.Message {
	var history []message.Message
	for _, b := range bodies {
		history = append(history, message.Decode([]byte(b.Bytes), b.Type, b.Role)...)
	}
	return history
}
