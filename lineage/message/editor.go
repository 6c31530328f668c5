package message

import "github.com/lineage-store/lineage/internal/rawjson"

// editorPart reads a part of a response of VS Code by its kind. ok is false for others.
func editorPart(f fields, raw []byte, depth int) (parts []Part, ok bool) {
	p := Part{Given: raw}
	switch kind := f.text("kind"); {
	case kind == "" && rawjson.IsString(f["value"]) && f.text("type") == "", kind == "markdownVuln":
		p.Text = editorText(f["value"])
	case kind == "markdownContent", kind == "progressMessage", kind == "warning":
		p.Text = editorText(f["content"])
	case kind == "thinking":
		p.Kind, p.Text = ReasoningKind, textOf(f["value"])
	case kind == "inlineReference":
		p.Text = f.text("name")
		if p.Text == "" {
			p.Text = rawjson.Str(rawjson.Last(f["inlineReference"], "path"))
		}
	case kind == "toolInvocationSerialized":
		return editorCall(f, depth), true
	case kind == "":
		return nil, false
	default:
		p.Kind, p.Name, p.Data = DataKind, kind, raw
	}
	return []Part{p}, true
}

// editorText reads a text, or an object with Markdown.
func editorText(raw []byte) string {
	if rawjson.IsObject(raw) {
		raw = rawjson.Last(raw, "value")
	}
	return rawjson.Str(raw)
}

// editorCall reads a call of a tool of VS Code with its result.
func editorCall(f fields, depth int) []Part {
	call := Part{Kind: CallKind, Tool: f.text("toolId"), CallID: f.text("toolCallId")}
	details, command := f["resultDetails"], rawjson.Last(f["toolSpecificData"], "commandLine")
	if rawjson.IsObject(command) {
		command = rawjson.Last(command, "original")
	}
	switch input := rawjson.Last(details, "input"); {
	case input != nil:
		call.setInput(input)
	case rawjson.IsString(command):
		call.Input = new(object).raw("command", command).bytes()
	default:
		call.Text = editorText(f["invocationMessage"])
	}
	if !rawjson.IsTrue(f["isComplete"]) {
		return []Part{call}
	}
	result := Part{Kind: ResultKind, Tool: call.Tool, CallID: call.CallID, Failed: rawjson.IsTrue(rawjson.Last(details, "isError"))}
	for e := range rawjson.Elements(rawjson.Last(details, "output")) {
		if value := fieldsOf(e)["value"]; rawjson.IsString(value) && string(rawjson.Last(e, "isText")) != "false" {
			result.Output = append(result.Output, Part{Kind: TextKind, Text: rawjson.Str(value)})
		} else {
			result.Output = append(result.Output, Part{Kind: DataKind, Data: e})
		}
	}
	if said := editorText(f["pastTenseMessage"]); result.Output == nil && said != "" {
		result.Output = []Part{{Kind: TextKind, Text: said}}
	}
	return []Part{call, result}
}
