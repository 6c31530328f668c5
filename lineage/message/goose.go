package message

import "github.com/lineage-store/lineage/internal/rawjson"

// goosePart reads a part of a message of Goose. ok is false for parts that other formats have too.
func goosePart(f fields, kind string, raw []byte, depth int) (parts []Part, ok bool) {
	var p Part
	switch {
	case (kind == "toolRequest" || kind == "frontendToolRequest") && rawjson.IsObject(f["toolCall"]):
		outcome := fieldsOf(f["toolCall"])
		call := fieldsOf(outcome["value"])
		p.Kind, p.CallID, p.Tool = CallKind, f.text("id"), call.text("name")
		if p.Tool == "" { // the model's call could not be read
			p.Text = outcome.text("error")
			break
		}
		p.setInput(call["arguments"])
	case kind == "toolResponse" && rawjson.IsObject(f["toolResult"]):
		outcome := fieldsOf(f["toolResult"])
		p.Kind, p.CallID = ResultKind, f.text("id")
		switch {
		case outcome.text("status") == "error":
			p.Failed, p.Output = true, []Part{{Kind: TextKind, Text: outcome.text("error")}}
		case rawjson.IsObject(outcome["value"]):
			p.Output, p.Failed = outputValue(outcome["value"], depth), rawjson.IsTrue(rawjson.Last(outcome["value"], "isError"))
		default: // of older versions
			p.Output = contents(outcome["value"], depth)
		}
	case kind == "redactedThinking":
		p.Kind, p.Name, p.Data = DataKind, kind, raw
	case (kind == "systemNotification" || kind == "summarizationRequested" || kind == "contextLengthExceeded" || kind == "conversationCompacted") && rawjson.IsString(f["msg"]):
		p.Text = f.text("msg")
	case kind == "toolConfirmationRequest", kind == "actionRequired":
		p.Kind, p.Name, p.Data = DataKind, kind, raw
	default:
		return nil, false
	}
	return []Part{p}, true
}
