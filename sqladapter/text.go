package sqladapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// said are the keys of a message and of its parts under which is what somebody
// wrote, a tool's input and output included, and names that people see. What a part of
// application data holds is there, too. Everything else there is for programs.
var said = map[string]bool{
	"text": true, "content": true, "parts": true, "reasoning": true, "thinking": true, "input": true, "output": true, "args": true,
	"arguments": true, "result": true, "errorText": true, "value": true, "thoughts": true, "think": true, "refusal": true,
	"title": true, "filename": true,
}

// dataType begins the types of parts whose member data is the application's.
const dataType = "data-"

// searchText returns what a message says, for search: what is under the keys that
// are for that, or all of its text where there are no such keys. Malformed JSON says
// nothing.
func searchText(data json.RawMessage) string {
	var t textReader
	t.decoder = json.NewDecoder(bytes.NewReader(data))
	t.decoder.UseNumber()
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	var malformed *json.SyntaxError
	if errors.As(err, &malformed) {
		return "" // the decoder of tokens would not end, or nest without a limit
	}
	has := func(key string) bool { return err == nil && object[key] != nil }
	var contents []json.RawMessage
	t.copied = has("content") && json.Unmarshal(object["content"], &contents) == nil && len(contents) > 0
	t.value(has("parts") || has("content") || has("text") || has("from") && has("value"))
	return t.b.String()
}

// textReader collects text from JSON in the order it is written in.
type textReader struct {
	decoder *json.Decoder
	b       strings.Builder
	depth   int
	copied  bool // a text beside the contents repeats them
}

func (t *textReader) add(text string) {
	if text == "" {
		return
	}
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
	t.b.WriteString(text)
}

// value reads a value. Of the objects of a message only what was said is taken; what
// a tool was given or gave is taken whole.
func (t *textReader) value(message bool) {
	token, err := t.decoder.Token()
	if err != nil {
		return
	}
	switch token := token.(type) {
	case string:
		t.add(token)
	case json.Number:
		t.add(token.String())
	case json.Delim:
		t.depth++
		var kind string
		var data json.RawMessage
		for t.decoder.More() {
			if token == '[' {
				t.value(message)
				continue
			}
			key, err := t.decoder.Token()
			if err != nil {
				return
			}
			name, _ := key.(string)
			switch {
			case !message:
				t.value(false)
			case said[name] && (name != "text" || t.depth > 1 || !t.copied):
				t.value(name == "parts" || name == "content")
			default:
				var skipped json.RawMessage
				if t.decoder.Decode(&skipped) != nil {
					return
				}
				switch name {
				case "type":
					_ = json.Unmarshal(skipped, &kind) // of another kind, it is none
				case "data":
					data = skipped
				}
			}
		}
		t.depth--
		_, _ = t.decoder.Token() // the end that More saw
		if data != nil && strings.HasPrefix(kind, dataType) {
			rest := t.decoder
			t.decoder = json.NewDecoder(bytes.NewReader(data))
			t.decoder.UseNumber()
			t.value(false)
			t.decoder = rest
		}
	}
}
