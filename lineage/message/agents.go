package message

import "github.com/lineage-store/lineage/internal/rawjson"

// SessionContext is the element in which Gemini CLI states its surroundings, in a message of the user before a history.
const SessionContext = "session_context"

// agentMessage reads a message in the format of a coding agent. ok is false for other messages. given is the role if
// the message has none.
func agentMessage(f fields, given string, depth int) (m Message, ok bool) {
	for _, read := range []func(fields, string, int) (Message, bool){
		piMessage, copilotMessage, geminiMessage, codeMessage, openCodeMessage, cursorBubble, trajectoryStep, antigravityStep,
	} {
		if m, ok = read(f, given, depth); ok {
			return m, true
		}
	}
	return Message{}, false
}

// piMessage reads a message of pi.
func piMessage(f fields, given string, depth int) (m Message, ok bool) {
	switch role, kind := f.text("role"), f.text("type"); {
	case role == "toolResult" && f["toolCallId"] != nil:
		return Message{Role: "tool", Name: f.text("toolName"), Parts: []Part{{
			Kind: ResultKind, Tool: f.text("toolName"), CallID: f.text("toolCallId"), Output: contents(f["content"], depth), Failed: rawjson.IsTrue(f["isError"]),
		}}}, true
	case role == "bashExecution" && f["command"] != nil:
		m = Message{Role: role, Parts: contents(f["command"], depth)}
		m.Parts = append(m.Parts, contents(f["output"], depth)...)
		return m, true
	case (kind == "compaction" || kind == "branch_summary") && rawjson.IsString(f["summary"]):
		return Message{Role: given, Parts: []Part{{Kind: TextKind, Text: f.text("summary")}}}, true
	case kind == "custom_message" && f["content"] != nil:
		return Message{Role: given, Parts: contents(f["content"], depth)}, true
	}
	return Message{}, false
}

// copilotMessage reads a message of Copilot CLI.
func copilotMessage(f fields, given string, depth int) (m Message, ok bool) {
	switch {
	case rawjson.IsArray(f["toolRequests"]):
		m = Message{Role: given}
		if text := f.text("reasoningText"); text != "" {
			m.Parts = append(m.Parts, Part{Kind: ReasoningKind, Text: text})
		}
		m.Parts = append(m.Parts, contents(f["content"], depth)...)
		for e := range rawjson.Elements(f["toolRequests"]) {
			request := fieldsOf(e)
			call := Part{Kind: CallKind, Tool: request.text("name"), CallID: request.text("toolCallId")}
			call.setInput(request["arguments"])
			m.Parts = append(m.Parts, call)
		}
		return m, true
	case f.text("toolCallId") != "" && f["success"] != nil && f.text("type") == "":
		result := Part{Kind: ResultKind, CallID: f.text("toolCallId"), Failed: !rawjson.IsTrue(f["success"])}
		if result.Output = contents(rawjson.Last(f["result"], "content"), depth); f.has("error") {
			result.Output = append(result.Output, Part{Kind: TextKind, Text: rawjson.Str(rawjson.Last(f["error"], "message"))})
		}
		return Message{Role: given, Parts: []Part{result}}, true
	}
	return Message{}, false
}

// geminiMessage reads a message of Gemini CLI.
func geminiMessage(f fields, given string, depth int) (m Message, ok bool) {
	switch kind := f.text("type"); {
	case kind == "gemini" && f["id"] != nil:
		m = Message{Role: given}
		for e := range rawjson.Elements(f["thoughts"]) {
			thought := fieldsOf(e)
			for _, key := range []string{"subject", "description"} {
				if text := thought.text(key); text != "" {
					m.Parts = append(m.Parts, Part{Kind: ReasoningKind, Text: text})
				}
			}
		}
		m.Parts = append(m.Parts, contents(f["content"], depth)...)
		for e := range rawjson.Elements(f["toolCalls"]) {
			m.Parts = append(m.Parts, geminiCall(fieldsOf(e), depth)...)
		}
		return m, true
	case kind == "user" && f["id"] != nil && f["content"] != nil && f.text("role") == "":
		return Message{Role: given, Parts: contents(f["content"], depth)}, true
	}
	return Message{}, false
}

// codeMessage reads a message of the user in VS Code, whose parts divide its text.
func codeMessage(f fields, given string, depth int) (Message, bool) {
	if !rawjson.IsString(f["text"]) || !rawjson.IsArray(f["parts"]) || f.text("role") != "" || f.text("type") != "" || given != "user" {
		return Message{}, false
	}
	return Message{Role: given, Parts: contents(f["text"], depth)}, true
}

// geminiCall reads a call of Gemini CLI with its result.
func geminiCall(f fields, depth int) []Part {
	call := Part{Kind: CallKind, Tool: f.text("name"), CallID: f.text("id")}
	call.setInput(f["args"])
	result := Part{Kind: ResultKind, Tool: call.Tool, CallID: call.CallID, Failed: f.text("status") == "error"}
	for _, p := range contents(f["result"], depth) {
		if p.Kind == ResultKind {
			result.Output = append(result.Output, p.Output...)
			result.Failed = result.Failed || p.Failed
		} else {
			result.Output = append(result.Output, p)
		}
	}
	switch {
	case result.Output != nil:
	case rawjson.IsString(f["resultDisplay"]):
		result.Output = []Part{{Kind: TextKind, Text: f.text("resultDisplay")}}
	case f.text("status") == "error", f.text("status") == "cancelled":
	default:
		return []Part{call}
	}
	return []Part{call, result}
}
