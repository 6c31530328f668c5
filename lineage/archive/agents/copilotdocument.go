package agents

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// CopilotDocuments reads sessions of the first versions of Copilot CLI: a file with one object per session, written whole at each save.
func CopilotDocuments() archive.Format {
	return archive.Format{
		Name: "copilot-json",
		Detect: func(h archive.Head) bool {
			first := h.Object()
			return rawjson.Has(first, "sessionId", "startTime", "chatMessages") || rawjson.Has(first, "sessionId", "startTime", "timeline")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := newCopilotSession(in, yield)
				s.readObjects(ctx, s.document)
			}
		},
	}
}

// document reads a whole session.
func (s *copilotSession) document(raw []byte, at archive.Position) {
	if s.id != "" {
		s.log("", "", "", raw, time.Time{}, at)
		return
	}
	s.chat(raw, at)
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "sessionId", "startTime", "selectedModel", "chatMessages":
		case "timeline": // what was shown to the user
			for entry := range rawjson.Elements(m.Value) {
				created := archive.ParseTime(rawjson.Get(entry, "timestamp"))
				s.log(rawjson.Str(rawjson.Get(entry, "type")), "", "", entry, created, at)
				s.at(created)
			}
		default:
			s.field(m, at)
		}
	}
}

// chat reads the messages of a session that is one object, and returns the id of the last one. They are messages of OpenAI's chat
// completions without ids and times. Here they have ids by their place and the time of the session, so that they are the same in
// both files that a session may have.
func (s *copilotSession) chat(session []byte, at archive.Position) (last string) {
	text := func(key string) string { return rawjson.Str(rawjson.Get(session, key)) }
	s.id = cmp.Or(s.id, text("sessionId"))
	s.about.model = cmp.Or(text("selectedModel"), s.about.model)
	created := archive.ParseTime(rawjson.Get(session, "startTime"))
	s.at(created)
	tools := make(map[string]string) // by the id of the call
	count := 0
	for raw := range rawjson.Elements(rawjson.Get(session, "chatMessages")) {
		count++
		role := rawjson.Str(rawjson.Get(raw, "role"))
		if role == "" {
			s.part.Skip(at, archive.Malformed("a message without a role"))
			continue
		}
		for call := range rawjson.Elements(rawjson.Get(raw, "tool_calls")) {
			tools[rawjson.Str(rawjson.Get(call, "id"))] = rawjson.Str(rawjson.Get(rawjson.Get(call, "function"), "name"))
		}
		n := archive.Node{ID: fmt.Sprintf("%s/%d", s.id, count), Parent: last, Role: role, Created: created, Root: last == "" && s.begin("history "), At: at}
		if role == "tool" {
			n.Name = tools[rawjson.Str(rawjson.Get(raw, "tool_call_id"))]
		}
		n.Give(rawjson.Compact(raw)) // a document is indented, an event is not
		s.add(n)
		last = n.ID
	}
	return last
}
