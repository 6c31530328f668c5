package message

import "github.com/lineage-store/lineage/internal/rawjson"

// cursorBubble reads a message of Cursor: a text, reasoning, or a call with its result.
func cursorBubble(f fields, given string, depth int) (m Message, ok bool) {
	if !rawjson.IsString(f["bubbleId"]) || f["type"] == nil || rawjson.IsString(f["type"]) {
		return Message{}, false
	}
	m = Message{Role: given}
	if text := rawjson.Str(rawjson.Last(f["thinking"], "text")); text != "" {
		m.Parts = append(m.Parts, Part{Kind: ReasoningKind, Text: text})
	}
	m.Parts = append(m.Parts, contents(f["text"], depth)...)
	tool := fieldsOf(f["toolFormerData"])
	if tool.text("name") == "" {
		return m, true
	}
	call := Part{Kind: CallKind, Tool: tool.text("name"), CallID: tool.text("toolCallId")}
	call.setInput(tool.firstRaw("rawArgs", "params"))
	m.Parts = append(m.Parts, call)
	result := Part{Kind: ResultKind, Tool: call.Tool, CallID: call.CallID}
	switch status := tool.text("status"); {
	case status == "error", status == "cancelled":
		result.Failed = true
		result.Output = contents(tool.firstRaw("error", "result"), depth)
	case tool["result"] != nil:
		result.Output = outputValue(tool["result"], depth)
	case status != "completed":
		return m, true
	}
	m.Parts = append(m.Parts, result)
	return m, true
}
