package agents

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Pi reads sessions of pi, and of OpenClaw in the same form: a file of JSON lines per session, with
// entries that form a tree.
func Pi() archive.Format {
	return archive.Format{
		Name: "pi", Grows: true,
		Tried: "sessions that pi 0.73.1 wrote",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				kind := rawjson.Str(rawjson.Get(line, "type"))
				switch {
				case kind == "session" && rawjson.Has(line, "id", "timestamp", "cwd"),
					kind == "message" && rawjson.Has(line, "id", "timestamp", "message") && rawjson.Has(rawjson.Get(line, "message"), "role"):
					return true
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := piSession{session: newSession(in, yield)}
				s.about.agent, s.known = "pi", make(map[string]bool)
				s.readLines(ctx, s.line)
			}
		},
	}
}

// piSession is a session of pi while it is read.
type piSession struct {
	session
}

// line reads the header or an entry.
func (s *piSession) line(raw []byte, at archive.Position) error {
	n := archive.Node{At: at}
	var kind string
	var message []byte
	var hasParent bool
	var rest rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "type":
			kind = rawjson.Str(m.Value)
		case "id":
			n.ID = rawjson.Str(m.Value)
		case "parentId":
			hasParent = true
			n.Parent = rawjson.Str(m.Value)
		case "timestamp":
			if n.Created = archive.ParseTime(m.Value); n.Created.IsZero() {
				rest.Add(m)
			}
		case "message":
			message = m.Value
		default:
			rest.Add(m)
		}
	}
	switch {
	case kind == "session" && s.id == "":
		s.header(raw, at)
		return nil
	case kind == "message" && rawjson.IsObject(message):
		s.message(&n, message)
		n.Metadata = rest.Bytes()
	case kind == "compaction" || kind == "branch_summary":
		n.Role, n.Name = "system", kind
		n.Give(raw)
	case kind == "custom_message":
		n.Role, n.Name = "custom", rawjson.Str(rawjson.Get(raw, "customType"))
		n.Give(raw)
	default:
		s.setting(kind, raw)
		s.log(kind, n.ID, n.Parent, raw, n.Created, at)
		s.part.Current = s.resolve(n.ID)
		return nil
	}
	s.link(&n, hasParent)
	s.add(n)
	s.part.Current = n.ID // pi continues the last entry
	return nil
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
			// The path of a file that is named by its time and session.
			name := strings.TrimSuffix(archive.BaseName(rawjson.Str(m.Value)), ".jsonl")
			s.part.ForkedFrom = name[strings.LastIndexByte(name, '_')+1:]
			s.field(m, at)
		default:
			s.field(m, at)
		}
	}
}

// setting reads an entry that sets something of the session.
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
