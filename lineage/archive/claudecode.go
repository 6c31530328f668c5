package archive

import (
	"context"
	"iter"
	"strings"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// claudeCode reads Claude Code sessions: JSON lines, in one file per session and subagent.
func claudeCode() Format {
	return Format{
		Name: "claude-code", Grows: true,
		Detect: func(h Head) bool {
			for _, line := range h.lines(20) {
				if isSessionLine(line) || has(line, "parentUuid", "sessionId") || has(line, "summary", "leafUuid") || has(line, "messageId", "snapshot") {
					return true
				}
			}
			return has(h.object(), "loglines")
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return func(yield func(*Conversation, error) bool) {
				s := session{in: in, yield: yield, standIn: make(map[string]string), turnOf: make(map[string]string), tail: make(map[string]string)}
				if has(in.Head().object(), "loglines") {
					s.readWhole(ctx)
				} else {
					s.readLines(ctx)
				}
			}
		},
	}
}

// isSessionLine reports whether a line, possibly truncated, is a message of a session. Sessions of
// other agents have similar lines with other types.
func isSessionLine(line []byte) bool {
	kind := rawjson.Str(rawjson.Get(line, "type"))
	return (kind == "user" || kind == "assistant") && rawjson.IsObject(rawjson.Get(line, "message")) && (has(line, "uuid") || has(line, "cwd") || has(line, "timestamp"))
}

// partBytes and partNodes are the approximate size of a part of a session that is yielded.
const (
	partBytes = 4 << 20
	partNodes = 4096
)

// session is a session being read.
type session struct {
	in    *Input
	yield func(*Conversation, error) bool
	part  Conversation // read since the last part
	bytes int
	id    string // of the session, once it is known

	title, custom string
	// standIn maps a line that is not a message to the message that lines after it follow.
	standIn map[string]string
	// turnOf maps the uuid of a line to the model's answer that it belongs to, tail maps an answer
	// to its last line: see follow.
	turnOf, tail map[string]string
	asides       map[string]bool
	first        bool // a part was yielded
}

func (s *session) readLines(ctx context.Context) {
	for item, err := range s.in.Lines(ctx) {
		if item.Pause {
			if !s.pause() {
				return
			}
			continue
		}
		if err == nil {
			if bad := item.Valid(); bad != nil {
				err = damaged(item.At, bad)
				if repair := item.beingWritten(bad); repair != nil && s.begun() {
					s.part.Repairs = append(s.part.Repairs, repair)
					continue
				}
			} else if !rawjson.IsObject(item.Raw) {
				err = damaged(item.At, malformed("not an object"))
			}
		}
		if err != nil {
			if !s.yield(nil, err) {
				return
			}
			continue
		}
		s.line(item.Raw, item.At)
		if s.bytes += len(item.Raw); (s.bytes >= partBytes || len(s.part.Nodes) >= partNodes) && s.id != "" {
			if !s.send(true) {
				return
			}
		}
	}
	s.end()
}

// readWhole reads the variant with all lines in one object.
func (s *session) readWhole(ctx context.Context) {
	for item, err := range s.in.Items(ctx) {
		if err != nil {
			if !s.yield(nil, err) {
				return
			}
			continue
		}
		for line := range rawjson.Elements(rawjson.Get(item.Raw, "loglines")) {
			if rawjson.IsObject(line) {
				s.line(line, item.At)
			} else if !s.yield(nil, damaged(item.At, malformed("line is not an object"))) {
				return
			}
		}
	}
	s.end()
}

func (s *session) end() {
	if s.begun() {
		s.send(false)
	}
}

// pause yields what was read since the last part. Before the id of the session is known, it yields nothing.
func (s *session) pause() bool {
	if s.id == "" || !s.begun() {
		return s.yield(&Conversation{SourceID: s.id, More: true}, nil)
	}
	return s.send(true)
}

// begun reports whether the session has a node.
func (s *session) begun() bool { return s.first || len(s.part.Nodes) > 0 }

// send yields the nodes read since the last part.
func (s *session) send(more bool) bool {
	c := s.part
	c.SourceID, c.More, c.SharedIDs = s.id, more, true
	c.Title = s.title
	if s.custom != "" {
		c.Title = s.custom
	}
	s.part, s.bytes, s.first = Conversation{}, 0, true
	return s.yield(&c, nil)
}

// sessionName returns the session id if it is the file's name.
func sessionName(file string) string {
	name, ok := strings.CutSuffix(baseName(file), ".jsonl")
	if !ok || uuid.Validate(name) != nil || len(name) != 36 {
		return ""
	}
	return name
}

// line reads a line of the session.
func (s *session) line(raw []byte, at Position) {
	n := Node{At: at}
	var kind, agent, sessionID, logicalParent string
	var message, contents []byte
	var side, hasParent bool
	var rest jsonObject
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "type":
			kind = rawjson.Str(m.Value)
		case "uuid":
			n.ID = rawjson.Str(m.Value)
		case "parentUuid":
			hasParent = true
			n.Parent = rawjson.Str(m.Value)
		case "logicalParentUuid":
			logicalParent = rawjson.Str(m.Value)
			rest.add(m)
		case "timestamp":
			if n.Created = parseTime(m.Value); n.Created.IsZero() {
				rest.add(m)
			}
		case "sessionId":
			sessionID = rawjson.Str(m.Value)
		case "message":
			message = m.Value
		case "isSidechain":
			if side = rawjson.IsTrue(m.Value); side {
				rest.add(m)
			}
		case "agentId":
			agent = rawjson.Str(m.Value)
			rest.add(m)
		case "content":
			contents = m.Value
		case "forkedFrom":
			if from := rawjson.Str(rawjson.Get(m.Value, "sessionId")); from != "" {
				s.part.ForkedFrom = from
			}
			rest.add(m)
		case "summary":
			if kind := rawjson.Str(rawjson.Get(raw, "type")); kind == "summary" {
				s.title = rawjson.Str(m.Value)
			}
			rest.add(m)
		case "customTitle":
			s.custom = rawjson.Str(m.Value)
			rest.add(m)
		default:
			rest.add(m)
		}
	}
	if s.id == "" {
		if s.id = sessionName(s.in.Name); s.id == "" {
			s.id = sessionID
		}
	}
	if sessionID != "" && sessionID != s.id {
		rest.setText("sessionId", sessionID)
	}
	if side || agent != "" && strings.HasPrefix(baseName(s.in.Name), "agent-") {
		n.Aside = "sidechain"
		if agent != "" {
			n.Aside = "agent " + agent
		}
	}
	if n.Parent == "" && logicalParent != "" {
		hasParent, n.Parent = true, logicalParent
	}
	switch {
	case (kind == "user" || kind == "assistant") && rawjson.IsObject(message):
		s.message(&n, kind, message, hasParent)
	case kind == "system" && rawjson.IsString(contents):
		n.Role = "system"
		n.Body, n.Type = textBody(contents)
		s.link(&n, hasParent)
	default:
		s.logLine(&n, kind, raw)
		return
	}
	n.Metadata = rest.bytes()
	s.part.Nodes = append(s.part.Nodes, n)
	if s.part.Created.IsZero() && !s.first {
		s.part.Created = n.Created
	}
	if n.Created.After(s.part.Updated) {
		s.part.Updated = n.Created
	}
}

// logLine keeps a line that is not a message in the log. Lines that follow it follow the message
// before it.
func (s *session) logLine(n *Node, kind string, raw []byte) {
	if n.ID != "" {
		s.standIn[n.ID] = s.resolve(n.Parent)
	}
	if kind == "" {
		kind = "unknown"
	}
	s.part.Nodes = append(s.part.Nodes, Node{
		Role: kind, Body: raw, Type: typeJSON, Created: n.Created, Aside: asideLog, Root: s.begin(asideLog), At: n.At,
	})
}

// begin reports whether an aside begins here.
func (s *session) begin(aside string) bool {
	if s.asides[aside] {
		return false
	}
	if s.asides == nil {
		s.asides = make(map[string]bool)
	}
	s.asides[aside] = true
	return true
}

func (s *session) resolve(id string) string {
	if above, ok := s.standIn[id]; ok {
		return above
	}
	return id
}

// link sets the parent of a node as its line states, or makes it the root of a history. A line that
// states no parent follows the one before it.
func (s *session) link(n *Node, hasParent bool) {
	n.Parent = s.resolve(n.Parent)
	begins := s.begin("history " + n.Aside)
	if n.Parent == "" && (hasParent || begins) {
		n.Root = true
	}
}

// message reads the message in a line.
func (s *session) message(n *Node, kind string, raw []byte, hasParent bool) {
	var id string
	result := false
	n.Role = kind
	n.Give(raw)
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "role":
			if role := rawjson.Str(m.Value); role != "" {
				n.Role = role
			}
		case "content":
			for block := range rawjson.Elements(m.Value) {
				result = result || rawjson.Str(rawjson.Get(block, "type")) == "tool_result"
			}
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "id":
			id = rawjson.Str(m.Value)
		}
	}
	s.link(n, hasParent)
	s.follow(n, id, result)
}

// follow keeps an answer of the model in a single history. An answer consists of several lines with
// one message id. If it calls several tools at once, the next call and the result of the previous
// call name the same parent, but they are not branches.
func (s *session) follow(n *Node, id string, result bool) {
	turn := s.turnOf[n.Parent]
	switch {
	case n.Role == "assistant" && id != "":
		if turn == id && s.tail[id] != "" {
			n.Parent = s.tail[id]
		}
		turn = id
	case n.Role == "user" && result && turn != "":
		if tail := s.tail[turn]; tail != "" {
			n.Parent = tail
		}
	default:
		return
	}
	if n.ID != "" && turn != "" {
		s.turnOf[n.ID] = turn
		s.tail[turn] = n.ID
	}
}
