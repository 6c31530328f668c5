package message

import (
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// responsesItems are the item types of the Responses API that are read as messages.
var responsesItems = setOf("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
	"local_shell_call", "local_shell_call_output", "web_search_call", "file_search_call", "computer_call", "computer_call_output",
	"code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
	"item_reference", "compaction", "ghost_snapshot")

// ItemRole returns the role of an item of the Responses API by its type: "tool" for results, and
// "assistant" for calls, reasoning and the rest. It is empty for messages, which state their own,
// and for unknown types.
func ItemRole(kind string) string {
	switch {
	case strings.HasSuffix(kind, "_output"):
		return "tool"
	case kind != "message" && responsesItems[kind]:
		return "assistant"
	}
	return ""
}

// decodePart reads a part in any format by its type. It returns false for unknown parts.
func decodePart(raw []byte, depth int) ([]Part, bool) {
	if !rawjson.IsObject(raw) || depth > maxDepth {
		return nil, false
	}
	f := fieldsOf(raw)
	if parts, ok := editorPart(f, raw, depth); ok {
		return parts, true
	}
	kind := f.first("type", "content_type")
	if parts, ok := crushPart(f, kind, raw); ok {
		return parts, true
	}
	if parts, ok := goosePart(f, kind, raw, depth); ok {
		return parts, true
	}
	p := Part{Given: raw}
	switch {
	case kind == "dynamic-tool" || strings.HasPrefix(kind, "tool-") && (f.has("state") || kind != "tool-call" && kind != "tool-result"):
		return decodeTool(f, kind, raw, depth), true
	case kind == "text" || kind == "input_text" || kind == "output_text" || kind == "summary_text":
		return decodeText(f, raw, depth)
	case kind == "refusal":
		p.Kind, p.Text = TextKind, f.text("refusal")
	case p.reasoning(f, kind), p.call(f, kind), p.result(f, kind, depth):
	case responsesItems[kind]:
		return decodeItem(f, kind, raw, depth), true
	case kind == "function" && rawjson.IsObject(f["function"]), kind == "custom" && rawjson.IsObject(f["custom"]):
		return []Part{toolCall(raw)}, true
	case kind == "step-start" || strings.HasPrefix(kind, "source-") || strings.HasPrefix(kind, "data-"):
		p.Kind, p.Name, p.Data = DataKind, kind, raw
		if strings.HasPrefix(kind, "data-") && f["data"] != nil {
			p.Data = f["data"]
		}
	case isFile[kind]:
		p.file(f)
	case kind == "tool_call" && rawjson.IsObject(f["tool_call"]): // LibreChat
		return servedCall(f["tool_call"], depth), true
	case kind == "" || kind == "tool_call":
		return decodeUntyped(f, raw, depth)
	case f.has("text") && rawjson.IsString(f["text"]): // of ChatGPT, such as code
		p.Kind, p.Text = TextKind, f.text("text")
	case f.has("parts"):
		return contents(f["parts"], depth), true
	default:
		return nil, false
	}
	return []Part{p}, true
}

// decodeText reads a part with a text.
func decodeText(f fields, raw []byte, depth int) ([]Part, bool) {
	text := f["text"]
	if rawjson.IsObject(text) {
		text = rawjson.Last(text, "value") // LibreChat
	}
	switch {
	case rawjson.IsString(text):
		return []Part{{Kind: TextKind, Text: rawjson.Str(text), Given: raw}}, true
	case f.has("parts"): // ChatGPT
		return contents(f["parts"], depth), true
	}
	return nil, false
}

// reasoning fills a part of reasoning. It returns false for other types.
func (p *Part) reasoning(f fields, kind string) bool {
	switch kind {
	case "thinking", "reasoning", "reasoning_text", "redacted_thinking", "think":
		if p.Text = f.first("thinking", "think", "text"); p.Text == "" {
			p.Text = textOf(f["summary"], f["content"])
		}
	case "thoughts": // ChatGPT
		var thoughts []string
		for e := range rawjson.Elements(f["thoughts"]) {
			thoughts = append(thoughts, fieldsOf(e).first("content", "summary"))
		}
		p.Text = strings.Join(thoughts, "\n\n")
	default:
		return false
	}
	p.Kind = ReasoningKind
	return true
}

// call fills the call of a tool. It returns false for other types.
func (p *Part) call(f fields, kind string) bool {
	switch kind {
	case "tool_use", "server_tool_use", "mcp_tool_use":
		p.Tool, p.CallID, p.Hosted = f.text("name"), f.text("id"), kind != "tool_use"
		p.setInput(f["input"])
	case "toolCall": // pi
		p.Tool, p.CallID = f.text("name"), f.text("id")
		p.setInput(f["arguments"])
	case "tool-call": // AI SDK, model messages
		p.Tool, p.CallID = f.text("toolName"), f.text("toolCallId")
		p.setInput(f.firstRaw("input", "args"))
	default:
		return false
	}
	p.Kind = CallKind
	return true
}

// result fills the result of a tool. It returns false for other types.
func (p *Part) result(f fields, kind string, depth int) bool {
	switch {
	case strings.HasSuffix(kind, "tool_result"):
		p.CallID, p.Hosted = f.first("tool_use_id", "tool_call_id"), kind != "tool_result"
		p.Output, p.Failed = contents(f.firstRaw("content", "output"), depth), rawjson.IsTrue(f["is_error"])
		if p.CallID == f.text("tool_call_id") {
			p.Tool = f.text("name") // of the llm tool
		}
	case kind == "tool-result": // AI SDK, model messages
		p.Tool, p.CallID = f.text("toolName"), f.text("toolCallId")
		p.Output = modelOutput(f.firstRaw("output", "result"), depth)
	default:
		return false
	}
	p.Kind = ResultKind
	return true
}

var isFile = setOf("image_url", "image", "input_image", "input_audio", "input_file", "image_asset_pointer", "file", "document", "audio", "video_url",
	"audio_asset_pointer", "video_container_asset_pointer")

// decodeUntyped reads parts without a type: those of Gemini, bare calls, and lists of parts.
func decodeUntyped(f fields, raw []byte, depth int) ([]Part, bool) {
	p := Part{Given: raw}
	switch {
	case rawjson.IsObject(f["functionCall"]):
		c := fieldsOf(f["functionCall"])
		p.Kind, p.Tool, p.CallID = CallKind, c.text("name"), c.text("id")
		p.setInput(c["args"])
	case rawjson.IsObject(f["functionResponse"]):
		c := fieldsOf(f["functionResponse"])
		p.Kind, p.Tool, p.CallID = ResultKind, c.text("name"), c.text("id")
		p.Output, p.Failed = functionResponse(c["response"])
	case rawjson.IsObject(f["inlineData"]) || rawjson.IsObject(f["fileData"]):
		in := fieldsOf(f.firstRaw("inlineData", "fileData"))
		p.Kind, p.MediaType, p.URL = FileKind, in.text("mimeType"), in.text("fileUri")
		if data := in.text("data"); data != "" {
			p.URL = "data:" + p.MediaType + ";base64," + data
		}
	case rawjson.IsString(f["name"]) && (f["arguments"] != nil || f["args"] != nil), rawjson.IsObject(f["function"]):
		return []Part{toolCall(raw)}, true
	case rawjson.IsString(f["text"]):
		p.Text = f.text("text")
		if rawjson.IsTrue(f["thought"]) {
			p.Kind = ReasoningKind
		}
	case rawjson.IsArray(f["parts"]): // ChatGPT
		return contents(f["parts"], depth), true
	default:
		return nil, false
	}
	return []Part{p}, true
}

// functionResponse reads the result of a Gemini function: any object, usually one with an output or an error.
func functionResponse(raw []byte) (output []Part, failed bool) {
	if raw == nil {
		return nil, false
	}
	if f := fieldsOf(raw); len(f) == 1 {
		for key, value := range f {
			if (key == "output" || key == "error") && rawjson.IsString(value) {
				return []Part{{Kind: TextKind, Text: rawjson.Str(value)}}, key == "error"
			}
		}
	}
	return []Part{{Kind: DataKind, Data: raw}}, false
}

// decodeItem reads an item of the Responses API that is not a message.
func decodeItem(f fields, kind string, raw []byte, depth int) []Part {
	p := Part{Given: raw}
	switch kind {
	case "function_call", "custom_tool_call", "local_shell_call":
		p.Kind, p.Tool, p.CallID = CallKind, f.text("name"), f.first("call_id", "id")
		switch kind {
		case "function_call":
			p.setInput(f["arguments"])
		case "custom_tool_call":
			p.Text = f.text("input")
		default:
			p.Tool = "local_shell"
			p.setInput(f["action"])
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		p.Kind, p.CallID = ResultKind, f.first("call_id", "id")
		if p.Output = contents(f["output"], depth); rawjson.IsString(f["output"]) && p.Output == nil {
			p.Output = []Part{{Kind: TextKind}}
		}
	case "message":
		return contents(f["content"], depth)
	case "reasoning":
		p.Kind, p.Text = ReasoningKind, textOf(f["summary"], f["content"])
	default:
		p.Kind, p.Name, p.Data = DataKind, kind, raw
	}
	return []Part{p}
}

// decodeTool reads a tool part of a UI message: a call with its result.
func decodeTool(f fields, kind string, raw []byte, depth int) []Part {
	call := Part{Kind: CallKind, Tool: strings.TrimPrefix(kind, "tool-"), CallID: f.text("toolCallId"), Given: raw, Hosted: rawjson.IsTrue(f["providerExecuted"])}
	if kind == "dynamic-tool" {
		call.Tool = f.text("toolName")
	}
	if call.setInput(f.firstRaw("input", "args")); rawjson.IsString(f["input"]) {
		call.Input, call.Text = f["input"], "" // a plain string, not JSON in a string
	}
	result := Part{Kind: ResultKind, Tool: call.Tool, CallID: call.CallID, Given: raw, Hosted: call.Hosted}
	switch {
	case f.text("state") == "output-denied":
		result.Failed, result.Output = true, []Part{{Kind: TextKind, Text: fieldsOf(f["approval"]).text("reason")}}
		if result.Output[0].Text == "" {
			result.Output[0].Text = "The call was denied."
		}
	case rawjson.IsString(f["errorText"]) && f.text("state") != "output-available":
		result.Failed, result.Output = true, []Part{{Kind: TextKind, Text: f.text("errorText")}}
	case f["output"] != nil:
		result.Output = outputValue(f["output"], depth)
	default:
		return []Part{call}
	}
	return []Part{call, result}
}

// outputValue reads a result of any JSON: a text, parts, or data.
func outputValue(raw []byte, depth int) []Part {
	if rawjson.IsString(raw) {
		return []Part{{Kind: TextKind, Text: rawjson.Str(raw)}}
	}
	content := raw
	if c := rawjson.Get(raw, "content"); rawjson.IsArray(c) {
		content = c // a result of the Model Context Protocol
	}
	if rawjson.IsArray(content) {
		parts := contents(content, depth)
		shown := len(parts) > 0
		for i := range parts {
			shown = shown && parts[i].Given != nil && (parts[i].Kind == TextKind || parts[i].Kind == FileKind)
		}
		if shown {
			return parts
		}
	}
	return []Part{{Kind: DataKind, Data: raw}}
}

// modelOutput reads a result of the AI SDK: {type, value}.
func modelOutput(raw []byte, depth int) []Part {
	f := fieldsOf(raw)
	switch f.text("type") {
	case "text", "error-text":
		return []Part{{Kind: TextKind, Text: f.text("value")}}
	case "content":
		return contents(f["value"], depth)
	case "json", "error-json":
		return []Part{{Kind: DataKind, Data: f["value"]}}
	}
	if raw == nil {
		return nil
	}
	return outputValue(raw, depth)
}

// contents reads the content of a message or result: a text, a list of parts, or one part.
func contents(raw []byte, depth int) []Part {
	switch {
	case raw == nil || rawjson.IsNull(raw):
		return nil
	case rawjson.IsString(raw):
		if text := rawjson.Str(raw); text != "" {
			return []Part{{Kind: TextKind, Text: text}}
		}
		return nil
	case rawjson.IsArray(raw):
		var parts []Part
		known := false
		for e := range rawjson.Elements(raw) {
			if rawjson.IsString(e) {
				known = true
				parts = append(parts, Part{Kind: TextKind, Text: rawjson.Str(e)})
				continue
			}
			decoded, ok := decodePart(e, depth+1)
			if !ok {
				decoded = []Part{{Kind: DataKind, Data: e, Given: e}}
			}
			known = known || ok
			parts = append(parts, decoded...)
		}
		if !known && len(parts) > 0 {
			return []Part{{Kind: DataKind, Data: raw}}
		}
		return parts
	}
	if parts, ok := decodePart(raw, depth+1); ok {
		return parts
	}
	return []Part{{Kind: DataKind, Data: raw, Given: raw}}
}

// textOf joins the texts of values.
func textOf(values ...[]byte) string {
	var texts []string
	for _, v := range values {
		for _, p := range contents(v, maxDepth-2) {
			if s := p.String(); s != "" {
				texts = append(texts, s)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}

// servedCall reads a call with its result: {id, name, args, output}.
func servedCall(raw []byte, depth int) []Part {
	call := toolCall(raw)
	output := rawjson.Last(raw, "output")
	if output == nil {
		output = rawjson.Last(rawjson.Last(raw, "function"), "output")
	}
	if rawjson.IsNull(output) {
		return []Part{call}
	}
	return []Part{call, {Kind: ResultKind, Tool: call.Tool, CallID: call.CallID, Output: outputValue(output, depth)}}
}
