package lineage

import (
	"bytes"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
)

// ToolCall is a call of a tool by a model.
type ToolCall struct {
	// ID is the provider's id of the call. The result has the same id.
	ID, Tool string
	// Input is the input written by the model, usually a JSON object. nil stands for an empty object.
	Input []byte
}

// Calls returns a model's message that calls tools. The text may be empty. The message is kept in the
// form of chat completions, and Context.Request writes it for any API.
func Calls(text string, calls ...ToolCall) Item {
	var b bytes.Buffer
	b.WriteString(`{"role":"assistant","content":`)
	if text == "" {
		b.WriteString("null")
	} else {
		b.Write(rawjson.Quote(text))
	}
	for i, c := range calls {
		input := c.Input
		if input == nil {
			input = []byte("{}")
		}
		before := ","
		if i == 0 {
			before = `,"tool_calls":[`
		}
		fmt.Fprintf(&b, `%s{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`,
			before, rawjson.Quote(c.ID), rawjson.Quote(c.Tool), rawjson.Quote(string(input)))
	}
	if len(calls) > 0 {
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return Item{Role: "assistant", Type: content.TypeJSON, Body: b.Bytes()}
}

// ToolResult returns a message with the output of a tool, as the answer to the call with an id. The id may be empty
// only if the API of the model has no ids.
func ToolResult(callID, tool, text string) Item {
	if callID == "" {
		i := textMessage("tool", text)
		i.Name = tool
		return i
	}
	return Item{
		Role: "tool", Name: tool, Type: content.TypeJSON,
		Body: fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":%s}`, rawjson.Quote(callID), rawjson.Quote(text)),
	}
}
