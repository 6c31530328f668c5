package message

import (
	"cmp"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// trajectoryStep reads a step of a trajectory in the Agent Trajectory Interchange Format: the text and the calls of
// an agent, with the results.
func trajectoryStep(f fields, given string, depth int) (m Message, ok bool) {
	source := f.text("source")
	if f["step_id"] == nil || source != "agent" && source != "user" && source != "system" || f["message"] == nil && f["tool_calls"] == nil && f["observation"] == nil {
		return Message{}, false
	}
	if source == "agent" {
		source = "assistant"
	}
	m = Message{Role: cmp.Or(given, source)}
	if text := f.text("reasoning_content"); text != "" {
		m.Parts = append(m.Parts, Part{Kind: ReasoningKind, Text: text})
	}
	m.Parts = append(m.Parts, contents(f["message"], depth)...)
	for e := range rawjson.Elements(f["tool_calls"]) {
		c := fieldsOf(e)
		call := Part{Kind: CallKind, Tool: c.text("function_name"), CallID: c.text("tool_call_id")}
		call.setInput(c["arguments"])
		m.Parts = append(m.Parts, call)
	}
	for e := range rawjson.Elements(rawjson.Last(f["observation"], "results")) {
		r := fieldsOf(e)
		m.Parts = append(m.Parts, Part{Kind: ResultKind, CallID: r.text("source_call_id"), Output: contents(r["content"], depth)})
	}
	return m, true
}

// antigravityStep reads a step of Antigravity. The step of a tool follows the answer that called it.
func antigravityStep(f fields, given string, depth int) (m Message, ok bool) {
	kind := f.text("type")
	if f["step_index"] == nil || kind == "" {
		return Message{}, false
	}
	m = Message{Role: given}
	if given == "tool" {
		m.Parts = []Part{{Kind: ResultKind, Tool: strings.ToLower(kind), Output: contents(f["content"], depth), Failed: f.text("status") == "ERROR"}}
		return m, true
	}
	if text := f.text("thinking"); text != "" {
		m.Parts = append(m.Parts, Part{Kind: ReasoningKind, Text: text})
	}
	m.Parts = append(m.Parts, contents(f["content"], depth)...)
	for e := range rawjson.Elements(f["tool_calls"]) {
		call := toolCall(e)
		call.Input = givenArguments(call.Input)
		m.Parts = append(m.Parts, call)
	}
	return m, true
}

// givenArguments returns the arguments of a call as the model gave them. In transcript.jsonl each is JSON in a string, which may be cut.
func givenArguments(raw []byte) []byte {
	var given rawjson.Object
	quoted := false
	for m := range rawjson.Members(raw) {
		if !rawjson.IsString(m.Value) {
			return raw
		}
		text := rawjson.Str(m.Value)
		switch {
		case rawjson.Check([]byte(text)) == nil:
			m.Value = []byte(text)
			quoted = quoted || rawjson.IsString(m.Value)
		case text == "" || !strings.ContainsAny(text[:1], "\"{["):
			return raw
		}
		given.Add(m)
	}
	if !quoted {
		return raw
	}
	return given.Bytes()
}
