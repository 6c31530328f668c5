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

// Copilot reads sessions of Copilot CLI. A session is a file events.jsonl with one event per line.
func Copilot() archive.Format {
	return archive.Format{
		Name: "copilot", Grows: true,
		Tried: "published sessions of Copilot CLI 1.0.78, and one that 1.0.102 wrote; subagents and rewinds: documents",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				switch rawjson.Str(rawjson.Get(line, "type")) {
				case "session.start", "session.resume", "user.message", "assistant.message", "system.message":
					return rawjson.Has(line, "data", "id", "timestamp")
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := newCopilotSession(in, yield)
				s.readLines(ctx, s.line)
			}
		},
	}
}

// copilotSession is the state of reading a session of Copilot CLI.
type copilotSession struct {
	sessionReader
	calls map[string]copilotCall // by their id
	// before maps a message to the previous one, for rewinds.
	before map[string]string
}

func newCopilotSession(in *archive.Input, yield func(*archive.Conversation, error) bool) *copilotSession {
	s := &copilotSession{sessionReader: newSessionReader(in, yield), calls: make(map[string]copilotCall), before: make(map[string]string)}
	s.about.agent, s.known = "copilot", make(map[string]bool)
	return s
}

// copilotCall is the name of the tool that a call uses, and the message with the call.
type copilotCall struct{ tool, in string }

// line reads an event.
func (s *copilotSession) line(raw []byte, at archive.Position) error {
	r := lineRecord{Node: archive.Node{At: at}}
	agent := ""
	for m := range rawjson.Members(raw) {
		if r.take(m, keys{id: "id", parent: "parentId", message: "data"}) {
			continue
		}
		if m.Key == "agentId" {
			agent = rawjson.Str(m.Value)
		}
		r.rest.Add(m)
	}
	if !rawjson.IsObject(r.message) {
		s.logRecord(&r, raw)
		return nil
	}
	call := rawjson.Str(rawjson.Get(r.message, "parentToolCallId"))
	switch r.kind {
	case "user.message":
		r.Role = "user"
	case "assistant.message":
		r.Role, r.Model = "assistant", rawjson.Str(rawjson.Get(r.message, "model"))
	case "system.message":
		r.Role = cmp.Or(rawjson.Str(rawjson.Get(r.message, "role")), "system")
	case "tool.execution_complete":
		r.Role, r.Name = "tool", s.calls[rawjson.Str(rawjson.Get(r.message, "toolCallId"))].tool
	case "session.import_legacy": // a session of the first versions, whose file was removed
		s.log(r.kind, r.ID, cmp.Or(s.chat(rawjson.Get(r.message, "legacySession"), at), r.Parent), raw, r.Created, at)
		return nil
	default:
		parent := r.Parent
		if r.kind == "session.snapshot_rewind" {
			parent = s.rewound(rawjson.Str(rawjson.Get(r.message, "upToEventId")), parent)
		}
		s.state(r.kind, r.message, r.Created)
		s.log(r.kind, r.ID, parent, raw, r.Created, at)
		return nil
	}
	r.Give(r.message)
	r.Metadata = r.rest.Bytes()
	if agent = cmp.Or(call, agent); agent != "" {
		s.subagent(&r.Node, agent)
	} else {
		s.link(&r.Node, r.hasParent)
		s.about.model = cmp.Or(r.Model, s.about.model)
	}
	if r.ID != "" {
		s.before[r.ID] = r.Parent
	}
	for request := range rawjson.Elements(rawjson.Get(r.message, "toolRequests")) {
		if id := rawjson.Str(rawjson.Get(request, "toolCallId")); id != "" {
			s.calls[id] = copilotCall{rawjson.Str(rawjson.Get(request, "name")), r.ID}
		}
	}
	s.add(r.Node)
	return nil
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

// subagent moves a message into the history of a subagent, which begins at the message with the call. Events of
// subagents are in the same chain as the others, so the event after it is linked to the message before it.
func (s *copilotSession) subagent(n *archive.Node, agent string) {
	if n.ID != "" {
		s.standIn[n.ID] = s.resolve(n.Parent)
	}
	n.Aside, n.Parent = "agent "+agent, ""
	if s.begin("history " + n.Aside) {
		if from := s.calls[agent].in; from != "" {
			n.Parent = from
		} else {
			n.Root = true
		}
	}
}

// rewound returns the message before an event that was removed together with the events after it.
func (s *copilotSession) rewound(event, parent string) string {
	if before, ok := s.before[event]; ok {
		return before
	}
	if before, ok := s.standIn[event]; ok {
		return before
	}
	return parent
}

// state reads an event that describes the session.
func (s *copilotSession) state(kind string, data []byte, created time.Time) {
	text := func(keys ...string) string {
		value := data
		for _, key := range keys {
			value = rawjson.Get(value, key)
		}
		return rawjson.Str(value)
	}
	switch kind {
	case "session.start", "session.resume":
		s.id = cmp.Or(s.id, text("sessionId"))
		s.about.version = cmp.Or(text("copilotVersion"), s.about.version)
		s.about.model = cmp.Or(text("selectedModel"), s.about.model)
		s.about.cwd = cmp.Or(s.about.cwd, text("context", "cwd"))
		s.about.gitBranch = cmp.Or(s.about.gitBranch, text("context", "branch"))
		s.at(created)
	case "session.model_change":
		s.about.model = cmp.Or(text("newModel"), s.about.model)
	case "session.title_changed":
		s.title = cmp.Or(text("title"), s.title)
	}
}
