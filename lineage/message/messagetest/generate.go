// Package messagetest generates random histories in the dialects of package message, and checks
// histories against the rules that the providers document.
package messagetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/message"
)

// step is a part of a conversation in no particular dialect.
type step struct {
	system, user string
	image        string // a URL, of the user's
	reasoning    string
	said         string // by the assistant
	calls        []call
}

type call struct {
	id, tool, input, output string
	failed                  bool
}

func text(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"Hello.", "What is a DAG?", "line\nline", "é漢🎉 \"q\" \\ <b>&amp;", "{\"a\":1}", "a\u2028b", "null"}),
		rapid.StringMatching(`[a-zA-Z ,.]{0,30}[a-z]`),
	).Draw(t, label)
}

func image(t *rapid.T) string {
	return rapid.SampledFrom([]string{"data:image/png;base64,iVBORw0KGgo=", "https://example.com/a.png"}).Draw(t, "image")
}

func object(t *rapid.T, label string) string {
	value := rapid.SampledFrom([]string{`1`, `"x"`, `[1, 2.50]`, `{"deep":{"er":[null,true]}}`, `1e40`, `"a\u00e9\n"`}).Draw(t, label)
	return rapid.SampledFrom([]string{`{}`, `{"q":` + value + `}`, `{ "q" : ` + value + ` , "z":0}`}).Draw(t, label+" as")
}

// conversation draws steps that every API accepts: the user begins, and every call has a result.
func conversation(t *rapid.T) []step {
	var steps []step
	if rapid.Bool().Draw(t, "prompt") {
		steps = append(steps, step{system: text(t, "system")})
	}
	n := 0
	for range rapid.IntRange(1, 4).Draw(t, "turns") {
		s := step{user: text(t, "user")}
		if rapid.IntRange(0, 3).Draw(t, "with image") == 0 {
			s.image = image(t)
		}
		steps = append(steps, s)
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			s := step{}
			if rapid.IntRange(0, 3).Draw(t, "thinks") == 0 {
				s.reasoning = text(t, "reasoning")
			}
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				n++
				s.calls = append(s.calls, call{
					id: fmt.Sprintf("call-%d_x", n), tool: rapid.SampledFrom([]string{"search", "read_file", "a-b"}).Draw(t, "tool"),
					input: object(t, "input"), output: text(t, "output"), failed: rapid.IntRange(0, 4).Draw(t, "fails") == 0,
				})
			}
			if rapid.Bool().Draw(t, "says") {
				s.said = text(t, "said")
			}
			steps = append(steps, s)
		}
		steps = append(steps, step{said: text(t, "answer")})
	}
	return steps
}

// quoted returns a text as JSON, with random escapes.
func quoted(t *rapid.T, s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	if rapid.IntRange(0, 3).Draw(t, "escaped") > 0 {
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s)
		return strings.TrimSpace(out.String())
	}
	return string(b)
}

// spaced returns an object with the members, with random whitespace.
func spaced(t *rapid.T, members ...string) string {
	if rapid.IntRange(0, 3).Draw(t, "spaced") == 0 {
		return "{ " + strings.Join(members, " ,\n\t") + " }"
	}
	return "{" + strings.Join(members, ",") + "}"
}

// History draws a history that the API of a dialect accepts unchanged.
func History(t *rapid.T, d message.Dialect) []string {
	steps := conversation(t)
	var items []string
	for i, s := range steps {
		switch d {
		case message.Text:
			items = append(items, quoted(t, s.system+s.user+s.said))
		case message.OpenAI:
			items = append(items, chat(t, s)...)
		case message.Responses:
			items = append(items, responses(t, s, i)...)
		case message.Anthropic:
			items = append(items, anthropic(t, s, i)...)
		case message.UI:
			items = append(items, ui(t, s, i)...)
		}
	}
	if d == message.Anthropic {
		items = alternating(items)
	}
	return items
}

// alternating merges consecutive messages of one role, as the Messages API requires.
func alternating(items []string) []string {
	type m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	var out []string
	var last m
	for _, item := range items {
		var next m
		if json.Unmarshal([]byte(item), &next) != nil {
			continue
		}
		if next.Role != last.Role {
			out, last = append(out, item), next
			continue
		}
		last.Content = json.RawMessage(strings.TrimSuffix(blocks(last.Content), "]") + "," + strings.TrimPrefix(blocks(next.Content), "["))
		out[len(out)-1] = `{"role":"` + last.Role + `","content":` + string(last.Content) + `}`
	}
	return out
}

func blocks(content json.RawMessage) string {
	if content[0] == '"' {
		return `[{"type":"text","text":` + string(content) + `}]`
	}
	return string(content)
}

func chat(t *rapid.T, s step) []string {
	switch {
	case s.system != "":
		role := rapid.SampledFrom([]string{`"system"`, `"developer"`}).Draw(t, "role")
		return []string{spaced(t, `"role":`+role, `"content":`+quoted(t, s.system))}
	case s.image != "":
		return []string{spaced(t, `"role":"user"`, `"content":[`+spaced(t, `"type":"text"`, `"text":`+quoted(t, s.user))+`,{"type":"image_url","image_url":{"url":"`+s.image+`","detail":"low"}}]`)}
	case s.user != "":
		return []string{spaced(t, `"content": `+quoted(t, s.user), `"role":"user"`, `"name":"ada"`)}
	case len(s.calls) == 0:
		return []string{spaced(t, `"role":"assistant"`, `"content":`+quoted(t, s.said), `"refusal":null`)}
	}
	content := "null"
	if s.said != "" {
		content = quoted(t, s.said)
	}
	var calls, out []string
	for _, c := range s.calls {
		calls = append(calls, spaced(t, `"id":"`+c.id+`"`, `"type":"function"`, `"function":{"name":"`+c.tool+`","arguments":`+quoted(t, c.input)+`}`))
	}
	out = append(out, spaced(t, `"role":"assistant"`, `"content":`+content, `"tool_calls":[`+strings.Join(calls, ", ")+`]`))
	for _, c := range s.calls {
		out = append(out, spaced(t, `"role":"tool"`, `"tool_call_id":"`+c.id+`"`, `"content":`+quoted(t, c.output)))
	}
	return out
}

func responses(t *rapid.T, s step, i int) []string {
	switch {
	case s.system != "":
		return []string{spaced(t, `"type":"message"`, `"role":"system"`, `"content":`+quoted(t, s.system))}
	case s.user != "":
		content := quoted(t, s.user)
		if s.image != "" {
			content = `[{"type":"input_text","text":` + content + `},{"type":"input_image","image_url":"` + s.image + `","detail":"auto"}]`
		}
		return []string{spaced(t, `"role":"user"`, `"content":`+content)}
	}
	var out []string
	if s.reasoning != "" {
		out = append(out, spaced(t, `"type":"reasoning"`, fmt.Sprintf(`"id":"rs_%d"`, i), `"summary":[{"type":"summary_text","text":`+quoted(t, s.reasoning)+`}]`, `"encrypted_content":"gAAA"`))
	}
	if s.said != "" {
		out = append(out, rapid.SampledFrom([]string{
			spaced(t, `"type":"message"`, fmt.Sprintf(`"id":"msg_%d"`, i), `"role":"assistant"`, `"status":"completed"`, `"content":[{"type":"output_text","text":`+quoted(t, s.said)+`,"annotations":[]}]`),
			spaced(t, `"role":"assistant"`, `"content":`+quoted(t, s.said)),
		}).Draw(t, "message"))
	}
	kind, given := "function_call", `"arguments":`
	if rapid.IntRange(0, 4).Draw(t, "custom") == 0 {
		kind, given = "custom_tool_call", `"input":`
	}
	for _, c := range s.calls {
		out = append(out, spaced(t, `"type":"`+kind+`"`, `"call_id":"`+c.id+`"`, `"name":"`+c.tool+`"`, given+quoted(t, c.input)))
	}
	for _, c := range s.calls {
		output := quoted(t, c.output)
		if rapid.IntRange(0, 3).Draw(t, "shown") == 0 {
			output = `[{"type":"input_text","text":` + output + `},{"type":"input_image","image_url":"` + image(t) + `","detail":"auto"}]`
		}
		out = append(out, spaced(t, `"type":"`+kind+`_output"`, `"call_id":"`+c.id+`"`, `"output":`+output))
	}
	return out
}

func anthropic(t *rapid.T, s step, i int) []string {
	textBlock := func(s string) string { return spaced(t, `"type":"text"`, `"text":`+quoted(t, s)) }
	switch {
	case s.system != "":
		return nil
	case s.user != "":
		content := quoted(t, s.user)
		if s.image != "" {
			source := `{"type":"url","url":"` + s.image + `"}`
			if data, ok := strings.CutPrefix(s.image, "data:image/png;base64,"); ok {
				source = `{"type":"base64","media_type":"image/png","data":"` + data + `"}`
			}
			content = `[` + textBlock(s.user) + `,{"type":"image","source":` + source + `,"cache_control":{"type":"ephemeral"}}]`
		}
		return []string{spaced(t, `"role":"user"`, `"content":`+content)}
	}
	var texts, results []string
	if s.reasoning != "" {
		texts = append(texts, spaced(t, `"type":"thinking"`, `"thinking":`+quoted(t, s.reasoning), `"signature":"c2ln"`))
	}
	if s.said != "" {
		texts = append(texts, textBlock(s.said))
	}
	if rapid.IntRange(0, 4).Draw(t, "hosted") == 0 {
		h := rapid.SampledFrom(hostedTools).Draw(t, "hosted tool")
		id := fmt.Sprintf("srvtoolu_%d", i)
		texts = append(texts, `{"type":"server_tool_use","id":"`+id+`","name":"`+h.tool+`","input":{"query":"x"}}`,
			`{"type":"`+h.tool+`_tool_result","tool_use_id":"`+id+`","content":`+h.result+`}`)
	}
	for _, c := range s.calls {
		texts = append(texts, spaced(t, `"type":"tool_use"`, `"id":"`+c.id+`"`, `"name":"`+c.tool+`"`, `"input":`+c.input))
		output := quoted(t, c.output)
		if rapid.Bool().Draw(t, "blocks") {
			output = `[` + textBlock(c.output) + `]`
		}
		members := []string{`"tool_use_id":"` + c.id + `"`, `"type":"tool_result"`, `"content":` + output}
		if c.failed {
			members = append(members, `"is_error":true`)
		}
		results = append(results, spaced(t, members...))
	}
	out := []string{spaced(t, `"role":"assistant"`, `"content":[`+strings.Join(texts, ",")+`]`)}
	if len(results) > 0 {
		out = append(out, spaced(t, `"role":"user"`, `"content":[`+strings.Join(results, ",")+`]`))
	}
	return out
}

func ui(t *rapid.T, s step, i int) []string {
	textPart := func(s string) string { return spaced(t, `"type":"text"`, `"text":`+quoted(t, s), `"state":"done"`) }
	id := fmt.Sprintf(`"id":"m%d"`, i)
	switch {
	case s.system != "":
		return []string{spaced(t, id, `"role":"system"`, `"parts":[`+textPart(s.system)+`]`)}
	case s.user != "":
		parts := []string{textPart(s.user)}
		if s.image != "" {
			parts = append(parts, `{"type":"file","mediaType":"image/png","filename":"a.png","url":"`+s.image+`"}`)
		}
		return []string{spaced(t, id, `"role":"user"`, `"parts":[`+strings.Join(parts, ",")+`]`, `"metadata":{"n": 1}`)}
	}
	parts := []string{`{"type":"step-start"}`}
	if s.reasoning != "" {
		parts = append(parts, spaced(t, `"type":"reasoning"`, `"text":`+quoted(t, s.reasoning), `"providerMetadata":{"p":{"signature":"x"}}`))
	}
	for _, c := range s.calls {
		members := []string{`"type":"tool-` + c.tool + `"`}
		if rapid.IntRange(0, 3).Draw(t, "dynamic") == 0 {
			members = []string{`"type":"dynamic-tool"`, `"toolName":"` + c.tool + `"`}
		}
		members = append(members, `"toolCallId":"`+c.id+`"`, `"input":`+c.input)
		if c.failed {
			members = append(members, `"state":"output-error"`, `"errorText":`+quoted(t, c.output))
		} else {
			output := rapid.SampledFrom([]string{quoted(t, c.output), object(t, "result"), `null`, `[1]`}).Draw(t, "output")
			members = append(members, `"state":"output-available"`, `"output":`+output)
		}
		parts = append(parts, spaced(t, members...))
	}
	if s.said != "" {
		parts = append(parts, textPart(s.said))
	}
	if rapid.IntRange(0, 3).Draw(t, "extras") == 0 {
		parts = append(parts, `{"type":"data-chart","id":"d","data":{"x":[1]}}`, `{"type":"source-url","sourceId":"s","url":"https://example.com"}`)
	}
	return []string{spaced(t, id, `"role":"assistant"`, `"parts":[`+strings.Join(parts, ", ")+`]`)}
}

// hostedTools are tools of the provider, with possible results.
var hostedTools = []struct{ tool, result string }{
	{"web_search", `[{"type":"web_search_result","url":"https://example.com","title":"X","encrypted_content":"ab"}]`},
	{"web_search", `{"type":"web_search_tool_result_error","error_code":"unavailable"}`},
	{"web_fetch", `{"type":"web_fetch_result","url":"https://example.com","retrieved_at":null,"content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}}`},
	{"web_fetch", `{"type":"web_fetch_tool_result_error","error_code":"unavailable"}`},
	{"code_execution", `{"type":"code_execution_result","content":[{"type":"code_execution_output","file_id":"f"}],"return_code":0,"stdout":"1","stderr":""}`},
	{"code_execution", `{"type":"encrypted_code_execution_result","content":[],"return_code":1,"encrypted_stdout":"1","stderr":""}`},
	{"code_execution", `{"type":"code_execution_tool_result_error","error_code":"unavailable"}`},
	{"bash_code_execution", `{"type":"bash_code_execution_result","content":[{"type":"bash_code_execution_output","file_id":"f"}],"return_code":0,"stdout":"1","stderr":""}`},
	{"bash_code_execution", `{"type":"bash_code_execution_tool_result_error","error_code":"unavailable"}`},
	{"text_editor_code_execution", `{"type":"text_editor_code_execution_view_result","content":"x","file_type":"text","num_lines":1}`},
	{"text_editor_code_execution", `{"type":"text_editor_code_execution_create_result","is_file_update":true}`},
	{"text_editor_code_execution", `{"type":"text_editor_code_execution_str_replace_result","lines":["-a","+b"],"old_start":1}`},
	{"text_editor_code_execution", `{"type":"text_editor_code_execution_tool_result_error","error_code":"unavailable","error_message":"no"}`},
}
