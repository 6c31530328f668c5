package message

import (
	"cmp"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// openCodeMessage reads a message of OpenCode: {info, parts} of version 1, or one of version 2, whose type is its role.
func openCodeMessage(f fields, given string, depth int) (m Message, ok bool) {
	if rawjson.IsObject(f["info"]) && rawjson.IsArray(f["parts"]) {
		info := fieldsOf(f["info"])
		m = Message{ID: info.text("id"), Role: cmp.Or(info.text("role"), given)}
		for e := range rawjson.Elements(f["parts"]) {
			part := fieldsOf(e)
			switch part.text("type") {
			case "step-start", "step-finish", "snapshot", "patch": // marks between steps
			case "tool":
				m.Parts = append(m.Parts, openCodeCall(part)...)
			default:
				m.Parts = append(m.Parts, contents(e, depth)...)
			}
		}
		return m, true
	}
	kind := f.text("type")
	if !rawjson.IsObject(f["time"]) || f["role"] != nil {
		return Message{}, false
	}
	m = Message{Role: cmp.Or(given, kind)}
	switch {
	case kind == "assistant" && rawjson.IsArray(f["content"]):
		for e := range rawjson.Elements(f["content"]) {
			if part := fieldsOf(e); part.text("type") == "tool" && rawjson.IsObject(part["state"]) {
				m.Parts = append(m.Parts, openCodeTool(part, depth)...)
			} else {
				m.Parts = append(m.Parts, contents(e, depth)...)
			}
		}
	case (kind == "user" || kind == "synthetic" || kind == "system") && rawjson.IsString(f["text"]):
		m.Parts = contents(f["text"], depth)
		for e := range rawjson.Elements(f["files"]) {
			file := fieldsOf(e)
			m.Parts = append(m.Parts, Part{Kind: FileKind, MediaType: file.text("mime"), Filename: file.text("name"), URL: file.text("uri")})
		}
	case kind == "shell" && rawjson.IsString(f["command"]):
		m.Parts = append(contents(f["command"], depth), contents(f["output"], depth)...)
	default:
		return Message{}, false
	}
	return m, true
}

// openCodeCall reads a call of OpenCode with its result.
func openCodeCall(f fields) []Part {
	state := fieldsOf(f["state"])
	call := Part{Kind: CallKind, Tool: f.text("tool"), CallID: f.text("callID")}
	call.setInput(state["input"])
	result := Part{Kind: ResultKind, Tool: call.Tool, CallID: call.CallID}
	switch state.text("status") {
	case "completed":
		result.Output = []Part{{Kind: TextKind, Text: state.text("output")}}
	case "error":
		result.Failed, result.Output = true, []Part{{Kind: TextKind, Text: state.text("error")}}
	default:
		return []Part{call}
	}
	return []Part{call, result}
}

// openCodeTool reads a call of version 2 with its result.
func openCodeTool(f fields, depth int) []Part {
	state := fieldsOf(f["state"])
	call := Part{Kind: CallKind, Tool: f.text("name"), CallID: f.text("id")}
	call.setInput(state["input"])
	result := Part{Kind: ResultKind, Tool: call.Tool, CallID: call.CallID, Output: contents(state["content"], depth)}
	switch state.text("status") {
	case "completed":
		for _, output := range [][]byte{state["output"], state["result"]} {
			if result.Output == nil && output != nil {
				result.Output = outputValue(output, depth)
			}
		}
	case "error":
		result.Failed = true
		reason := state.text("error")
		if reason == "" {
			reason = rawjson.Str(rawjson.Last(state["error"], "message"))
		}
		result.Output = append(result.Output, Part{Kind: TextKind, Text: reason})
	default:
		return []Part{call}
	}
	return []Part{call, result}
}
