package agents

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// ClaudeCode reads Claude Code sessions: JSON lines, in one file per session and subagent.
func ClaudeCode() archive.Format {
	return archive.Format{
		Name: "claude-code", Grows: true,
		Tried: "published sessions",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				if isQwenLine(line) {
					return false
				}
				if isSessionLine(line) || rawjson.Has(line, "parentUuid", "sessionId") || rawjson.Has(line, "summary", "leafUuid") || rawjson.Has(line, "messageId", "snapshot") {
					return true
				}
			}
			return rawjson.Has(h.Object(), "loglines")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := claudeSession{session: newSession(in, yield), turnOf: make(map[string]string), tail: make(map[string]string), seen: make(map[string]bool), summaries: make(map[string]string)}
				s.sharedIDs = true
				if rawjson.Has(in.Head().Object(), "loglines") {
					s.readWhole(ctx)
				} else {
					s.readLines(ctx, s.line)
				}
			}
		},
	}
}

// isSessionLine reports whether a line, possibly truncated, is a message of a session. Sessions of
// other agents have similar lines with other types.
func isSessionLine(line []byte) bool {
	kind := rawjson.Str(rawjson.Get(line, "type"))
	return (kind == "user" || kind == "assistant") && rawjson.IsObject(rawjson.Get(line, "message")) && (rawjson.Has(line, "uuid") || rawjson.Has(line, "cwd") || rawjson.Has(line, "timestamp"))
}

// claudeSession is a session of Claude Code while it is read.
type claudeSession struct {
	session
	custom bool // the title is one set by the user
	// turnOf maps the uuid of a line to the model's answer that it belongs to, tail maps an answer
	// to its last line: see follow.
	turnOf, tail map[string]string
	noParents    bool // see statesNoParents
	tasks        claudeTasks
	// seen are the uuids of lines, and summaries those of leaves that were not seen: a file begins with summaries of other sessions.
	seen      map[string]bool
	summaries map[string]string
}

// maxSummaries limits the summaries of leaves that were not seen.
const maxSummaries = 1000

// summary sets the title to a summary if its leaf is in the session, as soon as it is.
func (s *claudeSession) summary(of, leaf string) {
	switch {
	case s.custom:
	case leaf == "" || s.seen[leaf]:
		s.title = of
	case len(s.summaries) < maxSummaries:
		s.summaries[leaf] = of
	}
}

// see notes the uuid of a line.
func (s *claudeSession) see(id string) {
	if id == "" {
		return
	}
	s.seen[id] = true
	if of, waits := s.summaries[id]; waits {
		delete(s.summaries, id)
		s.summary(of, id)
	}
}

// readWhole reads the variant with all lines in one object.
func (s *claudeSession) readWhole(ctx context.Context) {
	for item, err := range s.in.Items(ctx) {
		if err != nil {
			if !s.yield(nil, err) {
				return
			}
			continue
		}
		for line := range rawjson.Elements(rawjson.Get(item.Raw, "loglines")) {
			if rawjson.IsObject(line) {
				_ = s.line(line, item.At)
			} else if !s.yield(nil, archive.Damaged(item.At, archive.Malformed("line is not an object"))) {
				return
			}
		}
	}
	s.end()
}

// sessionName returns the session id if it is the file's name.
func sessionName(file string) string {
	name, ok := strings.CutSuffix(archive.BaseName(file), ".jsonl")
	if !ok || uuid.Validate(name) != nil || len(name) != 36 {
		return ""
	}
	return name
}

// line reads a line of the session.
func (s *claudeSession) line(raw []byte, at archive.Position) error {
	n := archive.Node{At: at}
	var kind, agent, sessionID, logicalParent string
	var message, contents []byte
	var side, hasParent bool
	var cwd, branch, version string
	var rest rawjson.Object
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
			rest.Add(m)
		case "timestamp":
			if n.Created = archive.ParseTime(m.Value); n.Created.IsZero() {
				rest.Add(m)
			}
		case "sessionId":
			sessionID = rawjson.Str(m.Value)
		case "message":
			message = m.Value
		case "isSidechain":
			if side = rawjson.IsTrue(m.Value); side {
				rest.Add(m)
			}
		case "agentId":
			agent = rawjson.Str(m.Value)
			rest.Add(m)
		case "content":
			contents = m.Value
		case "cwd":
			cwd = rawjson.Str(m.Value)
			rest.Add(m)
		case "gitBranch":
			branch = rawjson.Str(m.Value)
			rest.Add(m)
		case "version":
			version = rawjson.Str(m.Value)
			rest.Add(m)
		case "forkedFrom":
			if from := rawjson.Str(rawjson.Get(m.Value, "sessionId")); from != "" {
				s.part.ForkedFrom = from
			}
			rest.Add(m)
		case "summary":
			if rawjson.Str(rawjson.Get(raw, "type")) == "summary" {
				s.summary(rawjson.Str(m.Value), rawjson.Str(rawjson.Get(raw, "leafUuid")))
			}
			rest.Add(m)
		case "customTitle":
			if custom := rawjson.Str(m.Value); custom != "" {
				s.title, s.custom = custom, true
			}
			rest.Add(m)
		default:
			rest.Add(m)
		}
	}
	s.see(n.ID)
	ofAgent := strings.HasPrefix(archive.BaseName(s.in.Name), "agent-")
	if s.id == "" {
		if s.id = sessionName(s.in.Name); s.id == "" {
			s.id = sessionID
		}
	}
	if sessionID != "" && sessionID != s.id {
		rest.SetText("sessionId", sessionID)
	}
	if side || agent != "" && ofAgent {
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
		n.Body, n.Type = archive.TextBody(contents)
		s.link(&n, hasParent)
	default:
		s.log(kind, n.ID, n.Parent, raw, n.Created, at)
		return nil
	}
	n.Metadata = rest.Bytes()
	s.add(n)
	if n.Aside == "" || ofAgent { // whose session may not be there
		s.about.agent = "claude-code"
		s.about.version, s.about.model = cmp.Or(version, s.about.version), cmp.Or(n.Model, s.about.model)
		s.about.cwd, s.about.gitBranch = cmp.Or(s.about.cwd, cwd), cmp.Or(s.about.gitBranch, branch)
	}
	return nil
}

// message reads the message in a line.
func (s *claudeSession) message(n *archive.Node, kind string, raw []byte, hasParent bool) {
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
	if n.Aside == "sidechain" && n.Parent == "" && hasParent {
		n.Parent = s.tasks.started(raw)
	}
	s.link(n, hasParent && !s.statesNoParents(n, result))
	s.follow(n, id, result)
	if n.Aside == "" {
		s.tasks.see(n.ID, raw)
	}
}

// statesNoParents reports whether the file has the parent null in every line, so that it says nothing: an answer, or the result of
// a tool, is not the beginning of a history.
func (s *claudeSession) statesNoParents(n *archive.Node, result bool) bool {
	if n.Parent != "" {
		return false
	}
	if !s.noParents && (n.Role == "assistant" || result) && s.asides["history "+n.Aside] {
		s.noParents = true
		s.part.Repairs = append(s.part.Repairs, archive.Damaged(n.At, archive.Malformed("messages state no parents; each is put after the message before it")))
	}
	return s.noParents
}

// follow keeps an answer of the model in a single history. An answer consists of several lines with
// one message id. If it calls several tools at once, the next call and the result of the previous
// call name the same parent, but they are not branches.
func (s *claudeSession) follow(n *archive.Node, id string, result bool) {
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
