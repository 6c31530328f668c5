package form

import (
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// textKeys are the keys of texts in the known formats.
var textKeys = setOf("content", "text", "refusal", "parts", "transcript", "value", "output_text", "result", "thoughts", "extracted_content")

// mayBeEmpty are those of these keys that a message without text may have.
var mayBeEmpty = setOf("content", "text", "parts", "value", "fragments")

// nestedKeys are the keys of objects and lists that may contain texts. Values of other keys are
// aside.
var nestedKeys = setOf("content", "text", "parts", "message", "tool_calls", "function", "functionCall", "functionResponse", "function_call", "function_response",
	"kwargs", "source", "output", "summary", "item", "payload", "inlineData", "inline_data", "fileData", "file_data", "file", "image_url",
	"input_audio", "audio", "thoughts", "choices", "toolInvocation", "toolInvocations", "blob", "value", "reasoning", "reasoning_details",
	"tool_call", "attachments", "toolRequests", "toolCalls", "toolCall", "toolResult", "state", "fragments", "create_time", "$date")

// kindKeys are the keys of texts that describe the kind of an object. They repeat, so they
// stay in the form.
var kindKeys = setOf("type", "role", "name", "toolName", "tool_name", "state", "status", "object", "model", "model_slug", "media_type", "mediaType",
	"mime_type", "mimeType", "stop_reason", "finish_reason", "phase", "from", "sender", "recipient", "channel", "content_type", "language",
	"format", "detail", "service_tier", "version", "userType", "effort", "reasoning_effort", "verbosity", "truncation", "encoding", "ttl")

func setOf(keys ...string) map[string]bool {
	set := make(map[string]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set
}

// maxKindName is the maximum size of the name of a kind.
const maxKindName = 64

// isPlain reports whether a string looks like the name of a kind, not like text that somebody
// wrote.
func isPlain(quoted []byte) bool {
	if len(quoted) > maxKindName+2 {
		return false
	}
	for _, c := range quoted[1 : len(quoted)-1] {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' && c != '/' && c != ':' {
			return false
		}
	}
	return true
}

// objectRule is the description of an object by its members.
type objectRule struct {
	kind, role string
	tool       string // the tool that it calls, or whose result it is
	isFile     bool
	isData     bool
	// returns is set if the object is a result of a tool as Copilot CLI writes it.
	returns bool
	// copies is set if the text of the object repeats the list of its contents.
	copies bool
	// sent is set if the object names its sender.
	sent bool
}

// readObject reads the members that describe an object.
func readObject(raw []byte) objectRule {
	var o objectRule
	var name, tool, contentType string
	calls, contents, callID, success := false, false, false, false
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "type":
			o.kind = rawjson.Str(m.Value)
		case "content_type":
			contentType = rawjson.Str(m.Value)
		case "from":
			if from := rawjson.Str(m.Value); from == "function_call" || from == "observation" {
				o.role = from
			}
		case "content":
			contents = rawjson.IsArray(m.Value) && !isEmpty(m.Value)
		case "role":
			o.role = rawjson.Str(m.Value)
		case "name", "toolName", "tool_name":
			name = rawjson.Str(m.Value)
		case "tool":
			tool = rawjson.Str(m.Value)
		case "sender":
			o.sent = true
		case "toolCallId":
			callID = true
		case "success":
			success = true
		case "arguments", "args", "input", "output", "response":
			calls = true
		case "media_type", "mediaType", "mime_type", "mimeType", "file_data":
			o.isFile = true
		}
	}
	if o.kind == "" {
		o.kind = contentType
	}
	if o.kind == "tool" && name == "" { // OpenCode
		name = tool
	}
	switch tool, isTool := strings.CutPrefix(o.kind, "tool-"); {
	case isTool && name == "":
		o.tool = tool
	case o.role == "" && (calls || o.calls()), o.textKind(structure.TextPiece) == structure.OutputPiece:
		o.tool = name
	}
	o.isFile = o.isFile || o.kind == "base64"
	o.isData = strings.HasPrefix(o.kind, "data-")
	o.returns = callID && success && o.kind == ""
	o.copies = contents && o.kind == ""
	return o
}

// calls reports whether the object is a call of a tool, or the result of one.
func (o *objectRule) calls() bool {
	return strings.Contains(o.kind, "tool") || strings.Contains(o.kind, "call") || strings.Contains(o.kind, "function")
}

// textKind returns the kind of texts in the object, given the kind of those around it.
func (o *objectRule) textKind(around structure.PieceKind) structure.PieceKind {
	switch {
	case strings.Contains(o.kind, "reasoning"), strings.Contains(o.kind, "thinking"), strings.Contains(o.kind, "thought"), o.kind == "summary_text", o.kind == "THINK":
		return structure.ReasoningPiece
	case strings.HasSuffix(o.kind, "tool_result"), strings.HasSuffix(o.kind, "_output"), strings.HasSuffix(o.kind, "tool-result"), o.kind == "toolResponse":
		return structure.OutputPiece
	case o.role == "function_call":
		return structure.InputPiece
	case o.role == "observation":
		return structure.OutputPiece
	case o.role != "":
		return PlainPiece(o.role)
	}
	return around
}

// wraps reports whether the object is a part of Crush, whose members are in "data".
func (o *objectRule) wraps() bool {
	switch o.kind {
	case "text", "reasoning", "tool_call", "tool_result", "shell_command":
		return true
	}
	return false
}

// tells reports whether a member is a text of the object, for keys that are not those of texts in
// other objects: summaries of pi, and commands that its user runs.
func (o *objectRule) tells(key string) bool {
	switch key {
	case "summary":
		return o.kind == "compaction" || o.kind == "branch_summary"
	case "command", "output":
		return o.role == "bashExecution"
	}
	return false
}

// isEmpty reports whether a value is null, an empty text or an empty list.
func isEmpty(raw []byte) bool {
	switch raw[0] {
	case '"':
		return len(raw) == 2
	case '[':
		return raw[rawjson.SkipSpace(raw, 1)] == ']'
	}
	return raw[0] == 'n'
}

// hasParts reports whether a result is a part with content, or a list of parts.
func hasParts(raw []byte) bool {
	first := raw
	if rawjson.IsArray(raw) {
		first = nil
		for e := range rawjson.Elements(raw) {
			first = e
			break
		}
	}
	return rawjson.IsObject(first) && rawjson.IsString(rawjson.Get(first, "type")) &&
		(len(rawjson.Get(first, "text")) > 0 || len(rawjson.Get(first, "value")) > 0 || len(rawjson.Get(first, "source")) > 0)
}

// PlainPiece returns the kind of plain texts of a role.
func PlainPiece(role string) structure.PieceKind {
	if role == "tool" || role == "function" || role == "toolResult" {
		return structure.OutputPiece
	}
	return structure.TextPiece
}
