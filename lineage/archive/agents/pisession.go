package agents

import (
	"cmp"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// piSession is the state of reading a session of pi, or of another agent that writes such lines.
type piSession struct {
	sessionReader
}

func newPiSession(agent string, in *archive.Input, yield func(*archive.Conversation, error) bool) piSession {
	s := piSession{sessionReader: newSessionReader(in, yield)}
	s.about.agent, s.known = agent, make(map[string]bool)
	return s
}

// line reads the header or an entry.
func (s *piSession) line(raw []byte, at archive.Position) error {
	r := piRecord(raw, at)
	if r.kind == "session" && s.id == "" {
		s.header(raw, at)
		return nil
	}
	s.part.Current = s.entry(&r, raw) // pi continues the last entry
	return nil
}

func piRecord(raw []byte, at archive.Position) lineRecord {
	r := lineRecord{Node: archive.Node{At: at}}
	for m := range rawjson.Members(raw) {
		if !r.take(m, keys{id: "id", parent: "parentId", message: "message"}) {
			r.rest.Add(m)
		}
	}
	return r
}

// entry reads an entry. It returns the id of the message that it is, or that stands for it as a parent.
func (s *piSession) entry(r *lineRecord, raw []byte) string {
	switch {
	case r.kind == "message" && rawjson.IsObject(r.message):
		s.message(&r.Node, r.message)
		r.Metadata = r.rest.Bytes()
	case r.kind == "compaction" || r.kind == "branch_summary" || r.kind == "reset":
		r.Role, r.Name = "system", r.kind
		r.Give(raw)
	case r.kind == "custom_message":
		r.Role, r.Name = "custom", rawjson.Str(rawjson.Get(raw, "customType"))
		r.Give(raw)
	default:
		s.setting(r.kind, raw)
		s.logRecord(r, raw)
		return s.resolve(r.ID)
	}
	s.link(&r.Node, r.hasParent)
	s.add(r.Node)
	return r.ID
}

// header reads the first line.
func (s *piSession) header(raw []byte, at archive.Position) {
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "type":
		case "id":
			s.id = rawjson.Str(m.Value)
		case "timestamp":
			if s.part.Created = archive.ParseTime(m.Value); s.part.Created.IsZero() {
				s.field(m, at)
			}
		case "cwd":
			s.about.cwd = rawjson.Str(m.Value)
		case "parentSession":
			s.part.ForkedFrom = piSessionOf(rawjson.Str(m.Value))
			s.field(m, at)
		default:
			s.field(m, at)
		}
	}
}

// piSessionOf returns the id of the session in a file. Its name is the id, or has the time before it.
func piSessionOf(path string) string {
	name := strings.TrimSuffix(archive.BaseName(path), ".jsonl")
	if at, id, ok := strings.Cut(name, "_"); ok && len(at) == len("2006-01-02T15-04-05-000Z") && at[10] == 'T' {
		return id
	}
	return name
}

// setting reads an entry that changes a setting of the session.
func (s *piSession) setting(kind string, raw []byte) {
	switch kind {
	case "session_info":
		s.title = cmp.Or(rawjson.Str(rawjson.Get(raw, "name")), s.title)
	case "model_change":
		s.about.model = cmp.Or(rawjson.Str(rawjson.Get(raw, "modelId")), s.about.model)
	}
}

// message reads the message of an entry.
func (s *piSession) message(n *archive.Node, raw []byte) {
	n.Role = cmp.Or(rawjson.Str(rawjson.Get(raw, "role")), "unknown")
	switch n.Role {
	case "toolResult":
		n.Role, n.Name = "tool", rawjson.Str(rawjson.Get(raw, "toolName"))
	case "assistant":
		n.Model = rawjson.Str(rawjson.Get(raw, "model"))
		s.about.model = cmp.Or(n.Model, s.about.model)
	case "custom":
		n.Name = rawjson.Str(rawjson.Get(raw, "customType"))
	}
	n.Give(raw)
}
