package message

import (
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// editorPart reads a part of a response of VS Code by its kind. ok is false for others.
func editorPart(f fields, raw []byte, depth int) (parts []Part, ok bool) {
	p := Part{Given: raw}
	switch kind := f.text("kind"); {
	case kind == "" && rawjson.IsString(f["value"]) && f.text("type") == "", kind == "markdownVuln":
		p.Text = editorText(f["value"])
	case kind == "markdownContent", kind == "progressMessage", kind == "progressTaskSerialized", kind == "warning":
		p.Text = editorText(f["content"])
	case kind == "thinking":
		p.Kind, p.Text = ReasoningKind, textOf(f["value"])
	case kind == "inlineReference":
		p.Text = f.text("name")
		if p.Text == "" {
			p.Text = editorPath(f["inlineReference"])
		}
	case kind == "toolInvocationSerialized":
		return editorCall(f, depth), true
	case kind == "mcpServersStarting", kind == "prepareToolInvocation", kind == "codeblockUri", kind == "undoStop": // marks between parts
		return nil, true
	case kind == "textEditGroup":
		return editorChange(f), true
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

// editorPath returns the path of an address, or of a place in a file.
func editorPath(raw []byte) string {
	if uri := rawjson.Last(raw, "uri"); rawjson.IsObject(uri) {
		raw = uri
	}
	return rawjson.Str(rawjson.Last(raw, "path"))
}

// editorChange reads a change that VS Code made to a file: a call with the texts that were written, and its result.
func editorChange(f fields) []Part {
	var written strings.Builder
	for group := range rawjson.Elements(f["edits"]) {
		for edit := range rawjson.Elements(group) {
			written.WriteString(rawjson.Str(rawjson.Last(edit, "text")))
		}
	}
	const tool = "textEditGroup"
	input := new(object).text("path", editorPath(f["uri"])).text("content", written.String()).bytes()
	return []Part{{Kind: CallKind, Tool: tool, Input: input}, {Kind: ResultKind, Tool: tool}}
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
	if text := editorText(f["pastTenseMessage"]); result.Output == nil && text != "" {
		result.Output = []Part{{Kind: TextKind, Text: text}}
	}
	return []Part{call, result}
}
