package message

import (
	"regexp"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Maximum lengths of call ids and tool names.
const (
	maxChatCallID = 40
	maxCallID     = 64
	maxToolName   = 64
)

var (
	saidName = regexp.MustCompile(`^[^\s<|\\/>]+$`)
)

var (
	openAITool = textThat(func(s string) bool { return isName(s, maxToolName) })
	openAIName = textThat(isSpeaker)
	chatCallID = textThat(func(s string) bool { return s != "" && len(s) <= maxChatCallID })
	callID     = textThat(func(s string) bool { return s != "" && len(s) <= maxCallID })
	detail     = oneOf("low", "high", "auto", "original")
	phase      = oneOf("commentary", "final_answer")
	itemState  = oneOf("in_progress", "completed", "incomplete")
)

func isSpeaker(s string) bool { return len(s) <= 64 && saidName.MatchString(s) }

// fileData is a file in a data: URL.
var fileData = textThat(func(s string) bool {
	_, _, ok := base64Of(s)
	return ok
})

var (
	chatText    = objectOf([]string{"type", "text"}, members{"type": oneOf("text"), "text": aText})
	chatRefusal = objectOf([]string{"type", "refusal"}, members{"type": oneOf("refusal"), "refusal": aText})
	chatPart    = typed("type", map[string]*shape{
		"text": chatText,
		"image_url": objectOf([]string{"type", "image_url"}, members{
			"type": aText, "image_url": objectOf([]string{"url"}, members{"url": {starts: `"`, accepts: anyURL}, "detail": oneOf("low", "high", "auto")}),
		}),
		"input_audio": objectOf([]string{"type", "input_audio"}, members{
			"type": aText, "input_audio": objectOf([]string{"data", "format"}, members{"data": textThat(isBase64), "format": oneOf("wav", "mp3")}),
		}),
		"file": objectOf([]string{"type", "file"}, members{
			"type": aText, "file": (&shape{starts: "{", accepts: hasFile}).with(members{"file_data": fileData, "file_id": notEmpty, "filename": aText}),
		}),
	})
	chatAssistantPart = typed("type", map[string]*shape{"text": chatText, "refusal": chatRefusal})
	chatCall          = typed("type", map[string]*shape{
		"function": objectOf([]string{"id", "type", "function"}, members{
			"id": chatCallID, "type": aText, "function": objectOf([]string{"name", "arguments"}, members{"name": openAITool, "arguments": aText}),
		}),
		"custom": objectOf([]string{"id", "type", "custom"}, members{
			"id": chatCallID, "type": aText, "custom": objectOf([]string{"name", "input"}, members{"name": openAITool, "input": aText}),
		}),
	})
	chatTexts = aText.orElse(listOf(1, chatText))
	// chatMessage is a message of chat completions.
	chatMessage = typed("role", map[string]*shape{
		"system":    objectOf([]string{"role", "content"}, members{"role": aText, "content": chatTexts, "name": openAIName}),
		"developer": objectOf([]string{"role", "content"}, members{"role": aText, "content": chatTexts, "name": openAIName}),
		"user":      objectOf([]string{"role", "content"}, members{"role": aText, "content": aText.orElse(listOf(1, chatPart)), "name": openAIName}),
		"assistant": (&shape{starts: "{", accepts: chatSays}).with(members{
			"role": aText, "name": openAIName, "content": aText.orElse(listOf(1, chatAssistantPart)).orNull(), "refusal": aText.orNull(),
			"tool_calls": listOf(1, chatCall),
			"audio":      objectOf([]string{"id"}, members{"id": notEmpty}).orNull(), "function_call": {starts: "n"},
		}, "role"),
		"tool": objectOf([]string{"role", "content", "tool_call_id"}, members{"role": aText, "content": chatTexts, "tool_call_id": chatCallID}),
	})
)

// with returns a copy of an object's shape with other members.
func (s *shape) with(m members, need ...string) *shape {
	c := *s
	c.members, c.need = m, need
	return &c
}

// chatSays reports whether an assistant message has one of the required members.
func chatSays(raw []byte) bool {
	f := fieldsOf(raw)
	return f.has("content") || f.has("tool_calls") || f.has("audio") || f.has("refusal")
}

// hasFile reports whether a file is given in exactly one way.
func hasFile(raw []byte) bool {
	f := fieldsOf(raw)
	return f.has("file_data") != f.has("file_id") && (!f.has("file_data") || f.text("filename") != "")
}

func hasInput(keys ...string) func([]byte) bool {
	return func(raw []byte) bool {
		n := 0
		f := fieldsOf(raw)
		for _, k := range keys {
			if f.has(k) {
				n++
			}
		}
		return n == 1
	}
}

var (
	inputText = objectOf([]string{"type", "text"}, members{"type": oneOf("input_text"), "text": aText})
	inputPart = typed("type", map[string]*shape{
		"input_text": inputText,
		"input_image": (&shape{starts: "{", accepts: hasInput("image_url", "file_id")}).with(members{
			"type": aText, "image_url": {starts: `"`, accepts: anyURL}, "file_id": notEmpty, "detail": detail,
		}),
		"input_file": (&shape{starts: "{", accepts: hasInput("file_url", "file_id", "file_data")}).with(members{
			"type": aText, "file_url": {starts: `"`, accepts: webURL}, "file_id": notEmpty, "file_data": fileData, "filename": aText, "detail": oneOf("low", "high", "auto"),
		}),
	})
	annotation = typed("type", map[string]*shape{
		"url_citation": objectOf([]string{"type", "title", "url", "start_index", "end_index"}, members{
			"type": aText, "title": aText, "url": aText, "start_index": aNumber, "end_index": aNumber,
		}),
		"file_citation": objectOf([]string{"type", "file_id", "filename", "index"}, members{
			"type": aText, "file_id": aText, "filename": aText, "index": aNumber,
		}),
	})
	outputText = objectOf([]string{"type", "text"}, members{
		"type": aText, "text": aText, "annotations": listOf(0, annotation), "logprobs": listOf(0, never),
	})
	outputPart = typed("type", map[string]*shape{"output_text": outputText, "refusal": chatRefusal})
	itemID     = textThat(func(s string) bool { return s != "" && len(s) <= 64 })
	toolOutput = aText.orElse(listOf(1, inputPart))
	itemText   = objectOf([]string{"type", "text"}, members{"type": aText, "text": aText})
	theMessage = oneOf("message")
	said       = aText.orElse(listOf(1, inputPart))
	// responsesMessage is a message item.
	responsesMessage = typed("role", map[string]*shape{
		"user":      objectOf([]string{"role", "content"}, members{"role": aText, "type": theMessage, "content": said}),
		"system":    objectOf([]string{"role", "content"}, members{"role": aText, "type": theMessage, "content": said}),
		"developer": objectOf([]string{"role", "content"}, members{"role": aText, "type": theMessage, "content": said}),
		"assistant": objectOf([]string{"role", "content", "id", "status", "type"}, members{
			"role": aText, "type": theMessage, "id": itemID, "status": itemState, "phase": phase, "content": listOf(1, outputPart),
		}).orElse(objectOf([]string{"role", "content"}, members{"role": aText, "type": theMessage, "content": aText, "phase": phase})),
	})
	responsesOther = typed("type", map[string]*shape{
		"message": responsesMessage,
		"function_call": objectOf([]string{"type", "call_id", "name", "arguments"}, members{
			"type": aText, "call_id": callID, "name": openAITool, "arguments": aText, "id": itemID, "status": itemState,
		}),
		"function_call_output": objectOf([]string{"type", "call_id", "output"}, members{
			"type": aText, "call_id": callID, "output": toolOutput, "id": itemID, "status": itemState,
		}),
		"custom_tool_call": objectOf([]string{"type", "call_id", "name", "input"}, members{
			"type": aText, "call_id": callID, "name": openAITool, "input": aText, "id": itemID,
		}),
		"custom_tool_call_output": objectOf([]string{"type", "call_id", "output"}, members{"type": aText, "call_id": callID, "output": toolOutput, "id": itemID}),
		"reasoning": objectOf([]string{"type", "id", "summary"}, members{
			"type": aText, "id": itemID, "summary": listOf(0, itemText), "content": listOf(0, itemText), "encrypted_content": aText.orNull(), "status": itemState,
		}),
		"web_search_call": objectOf([]string{"type", "id", "status", "action"}, members{"type": aText, "id": itemID, "status": aText, "action": typed("type", map[string]*shape{
			"search": objectOf([]string{"type", "query"}, members{"type": aText, "query": aText, "queries": listOf(0, aText)}),
		})}),
		"compaction": objectOf([]string{"type", "encrypted_content"}, members{"type": aText, "encrypted_content": aText, "id": itemID}),
	})
)

// responsesItem is an input item of the Responses API.
var responsesItem = responsesOther.orElse(untypedMessage)

// untypedMessage is a message without a type.
var untypedMessage = func() *shape {
	s := *responsesMessage
	s.accepts = func(raw []byte) bool { return rawjson.Last(raw, "type") == nil }
	return &s
}()

// toolName returns a name for a tool that an API accepts.
func toolName(name string, longest int) string {
	if isName(name, longest) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && plainName.MatchString(string(r)) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), longest)]
}
