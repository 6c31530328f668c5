package resume

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// field is a member that OpenCode's import checks. A message with a wrong member would end the import in the middle.
type field struct {
	key      string
	accepts  func(raw []byte) bool
	optional bool
}

func has(raw []byte, fields ...field) bool {
	for _, f := range fields {
		value := rawjson.Last(raw, f.key)
		if value == nil && f.optional {
			continue
		}
		if value == nil || !f.accepts(value) {
			return false
		}
	}
	return true
}

func isBool(raw []byte) bool { return rawjson.IsTrue(raw) || string(bytes.TrimSpace(raw)) == "false" }

func isNumber(raw []byte) bool {
	n, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
}

// count returns a whole number that is not negative.
func count(raw []byte) (n int64, ok bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	return int64(f), err == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f)
}

func isCount(raw []byte) bool {
	_, ok := count(raw)
	return ok
}

// object returns a check for an object with members.
func object(fields ...field) func(raw []byte) bool {
	return func(raw []byte) bool { return rawjson.IsObject(raw) && !ambiguous(raw) && has(raw, fields...) }
}

var (
	openCodeSpan    = object(field{"start", isCount, false}, field{"end", isCount, true}, field{"compacted", isCount, true})
	openCodeSpanned = object(field{"start", isCount, false}, field{"end", isCount, false}, field{"compacted", isCount, true})
	openCodeCounted = object(field{"total", isNumber, true}, field{"input", isNumber, false}, field{"output", isNumber, false}, field{"reasoning", isNumber, false},
		field{"cache", object(field{"read", isNumber, false}, field{"write", isNumber, false}), false})
	openCodeFile = object(field{"mime", rawjson.IsString, false}, field{"url", rawjson.IsString, false}, field{"filename", rawjson.IsString, true})

	openCodeInfo = map[string]func([]byte) bool{
		"user": object(field{"time", object(field{"created", isCount, false}), false}, field{"agent", rawjson.IsString, false},
			field{"model", object(field{"providerID", rawjson.IsString, false}, field{"modelID", rawjson.IsString, false}, field{"variant", rawjson.IsString, true}), false},
			field{"system", rawjson.IsString, true}),
		"assistant": object(field{"time", object(field{"created", isCount, false}, field{"completed", isCount, true}), false},
			field{"modelID", rawjson.IsString, false}, field{"providerID", rawjson.IsString, false}, field{"mode", rawjson.IsString, false},
			field{"agent", rawjson.IsString, true}, field{"path", object(field{"cwd", rawjson.IsString, false}, field{"root", rawjson.IsString, false}), false},
			field{"summary", isBool, true}, field{"cost", isNumber, false}, field{"tokens", openCodeCounted, false},
			field{"variant", rawjson.IsString, true}, field{"finish", rawjson.IsString, true}),
	}
	openCodeStates = map[string]func([]byte) bool{
		"pending": object(field{"input", rawjson.IsObject, false}, field{"raw", rawjson.IsString, false}),
		"running": object(field{"input", rawjson.IsObject, false}, field{"title", rawjson.IsString, true}, field{"metadata", rawjson.IsObject, true}, field{"time", openCodeSpan, false}),
		"completed": object(field{"input", rawjson.IsObject, false}, field{"output", rawjson.IsString, false}, field{"title", rawjson.IsString, false},
			field{"metadata", rawjson.IsObject, false}, field{"time", openCodeSpanned, false}, field{"attachments", rawjson.IsArray, true}),
		"error": object(field{"input", rawjson.IsObject, false}, field{"error", rawjson.IsString, false}, field{"metadata", rawjson.IsObject, true}, field{"time", openCodeSpanned, false}),
	}
	// openCodeParts are the parts that are kept. Parts with nil are left out: steps, which are not sent, and parts
	// that undo changes of files, which belong to the old session.
	openCodeParts = map[string]func([]byte) bool{
		"text": object(field{"text", rawjson.IsString, false}, field{"synthetic", isBool, true}, field{"ignored", isBool, true},
			field{"time", openCodeSpan, true}, field{"metadata", rawjson.IsObject, true}),
		"reasoning":   object(field{"text", rawjson.IsString, false}, field{"time", openCodeSpan, false}, field{"metadata", rawjson.IsObject, true}),
		"file":        openCodeFile,
		"tool":        object(field{"callID", rawjson.IsString, false}, field{"tool", rawjson.IsString, false}, field{"metadata", rawjson.IsObject, true}, field{"state", openCodeStateIs, false}),
		"compaction":  object(field{"auto", isBool, false}, field{"overflow", isBool, true}),
		"step-start":  object(),
		"step-finish": object(field{"reason", rawjson.IsString, false}, field{"cost", isNumber, false}, field{"tokens", openCodeCounted, false}),
		"agent":       object(field{"name", rawjson.IsString, false}),
		"subtask":     object(),
		"snapshot":    nil, "patch": nil, "retry": nil,
	}
)

func openCodeStateIs(raw []byte) bool {
	accepts := openCodeStates[text(raw, "status")]
	if accepts == nil || !accepts(raw) {
		return false
	}
	for file := range rawjson.Elements(rawjson.Last(raw, "attachments")) {
		if !openCodeFile(file) {
			return false
		}
	}
	return true
}

// openCodeStored reports whether the body of a message is a record of OpenCode that its import accepts.
func openCodeStored(raw []byte) bool {
	info, parts := rawjson.Last(raw, "info"), rawjson.Last(raw, "parts")
	accepts := openCodeInfo[text(info, "role")]
	if ambiguous(raw) || accepts == nil || !accepts(info) || !rawjson.IsArray(parts) {
		return false
	}
	for part := range rawjson.Elements(parts) {
		accepts, known := openCodeParts[text(part, "type")]
		if !known || accepts != nil && !accepts(part) {
			return false
		}
	}
	return true
}

// openCodeEditor returns a function that changes messages for another session.
func openCodeEditor(s *Session) func(raw []byte) []byte {
	mode, _ := s.openCodeChoice()
	e := &openCodeEdit{s: s, mode: mode, ids: make(map[string]string)}
	return e.message
}

type openCodeEdit struct {
	s    *Session
	mode string
	n    int64
	// ids maps ids of messages to new ones. question is the new id of the user's last message. at is the time of the
	// last message.
	ids      map[string]string
	question string
	at       int64
	// id is the id of the current message. next is the number of the next part that is made for it from a file.
	id   string
	next int
}

// message returns a message for the new session.
func (e *openCodeEdit) message(raw []byte) []byte {
	parts := rawjson.Last(raw, "parts")
	e.id, e.next = e.s.openCodeMessageID(e.n), 0
	e.n++
	for range rawjson.Elements(parts) {
		e.next++
	}
	out := append([]byte(`{"info":`), e.info(rawjson.Last(raw, "info"))...)
	out = append(out, `,"parts":[`...)
	n := 0
	for part := range rawjson.Elements(parts) {
		if part = e.part(part); part == nil {
			continue
		}
		if n > 0 {
			out = append(out, ',')
		}
		out = append(out, e.own(part, openCodePartID(e.id, n), e.id)...)
		n++
	}
	return append(out, "]}"...)
}

// info returns what a message for the new session states besides its parts.
func (e *openCodeEdit) info(info []byte) []byte {
	role := text(info, "role")
	e.ids[text(info, "id")] = e.id
	info = ungranted(rawjson.RemoveFunc(info, func(key string) bool {
		switch key {
		case "tools", "format", "structured":
			return true // what the user allowed and wanted for one answer
		case "summary":
			return role == "user" // changes of files
		}
		return false
	}))
	info = setText(setText(info, "id", e.id), "sessionID", e.s.ID)
	info = set(info, "time", e.times(rawjson.Last(info, "time")))
	if role == "user" {
		e.question = e.id
		return setText(info, "agent", e.mode)
	}
	info = setText(info, "parentID", cmp.Or(e.ids[text(info, "parentID")], e.question, e.id))
	if rawjson.Last(info, "agent") == nil {
		info = setText(info, "agent", text(info, "mode"))
	}
	if failed := rawjson.Last(info, "error"); failed != nil {
		info = set(info, "error", openCodeError(failed))
	}
	return info
}

// times returns the times of a message, of which that of its creation is not before that of the message above, nor after now.
// Messages are sorted by it, and new ones must follow.
func (e *openCodeEdit) times(times []byte) []byte {
	created, _ := count(rawjson.Last(times, "created"))
	first := e.at == 0
	e.at = max(e.at, min(created, e.s.now.UnixMilli()))
	if e.at == created && !first {
		return times
	}
	return set(times, "created", strconv.AppendInt(nil, e.at, 10))
}

// own sets the ids of a part.
func (e *openCodeEdit) own(part []byte, id, message string) []byte {
	return setText(setText(setText(part, "id", id), "sessionID", e.s.ID), "messageID", message)
}

// part returns a part for the new session, nil if it is left out.
func (e *openCodeEdit) part(raw []byte) []byte {
	switch kind := text(raw, "type"); kind {
	case "step-start", "step-finish":
		return rawjson.Remove(raw, "snapshot")
	case "agent":
		return rawjson.Remove(raw, "source")
	case "compaction":
		if kept, ok := e.ids[text(raw, "tail_start_id")]; ok {
			return setText(raw, "tail_start_id", kept)
		}
		return rawjson.Remove(raw, "tail_start_id")
	case "subtask":
		// The last shell command would be run again. This is the text that is sent in its place.
		return []byte(`{"type":"text","synthetic":true,"text":"The following tool was executed by the user"}`)
	case "file":
		return e.file(raw)
	case "tool":
		return e.call(raw)
	default:
		if openCodeParts[kind] == nil {
			return nil
		}
		return raw
	}
}

// file returns a file with its data. A reference is replaced by a note, because the program would read the file on
// this machine.
func (e *openCodeEdit) file(raw []byte) []byte {
	if strings.HasPrefix(text(raw, "url"), "data:") {
		return rawjson.Remove(raw, "source")
	}
	kind, name := text(raw, "mime"), text(raw, "filename")
	if kind == "text/plain" || kind == "application/x-directory" {
		return nil // its content is in the texts beside it
	}
	if name == "" {
		name = "file"
	}
	return textBlock("[Attached " + kind + ": " + name + "]").raw
}

// call returns a call with only those files that contain their data.
func (e *openCodeEdit) call(raw []byte) []byte {
	state := rawjson.Last(raw, "state")
	files := rawjson.Last(state, "attachments")
	if files == nil {
		return raw
	}
	var kept [][]byte
	for file := range rawjson.Elements(files) {
		if strings.HasPrefix(text(file, "url"), "data:") {
			file = setText(rawjson.Remove(file, "source"), "type", "file")
			kept = append(kept, e.own(file, openCodePartID(e.id, e.next), e.id))
			e.next++
		}
	}
	list := append(append([]byte("["), bytes.Join(kept, []byte(","))...), ']')
	return set(raw, "state", set(state, "attachments", list))
}

// openCodeError returns the error of an answer in a form that all versions read. An aborted answer is sent to the
// model, other failed answers are not.
func openCodeError(raw []byte) []byte {
	name, reason := "UnknownError", text(rawjson.Last(raw, "data"), "message")
	if text(raw, "name") == "MessageAbortedError" {
		name = "MessageAbortedError"
	}
	return append(append([]byte(`{"name":"`+name+`","data":{"message":`), rawjson.Quote(reason)...), "}}"...)
}
