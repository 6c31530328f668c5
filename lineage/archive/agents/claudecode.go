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
		Version: 1, // titles of the model (ai-title)
		Tried:   "published sessions",
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
				s := claudeSession{sessionReader: newSessionReader(in, yield), turnOf: make(map[string]string), tail: make(map[string]string), seen: make(map[string]bool), summaries: make(map[string]string)}
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

// isSessionLine reports whether a line, possibly truncated, is a message of a session. Sessions of other agents have
// similar lines with other types.
func isSessionLine(line []byte) bool {
	kind := rawjson.Str(rawjson.Get(line, "type"))
	return (kind == "user" || kind == "assistant") && rawjson.IsObject(rawjson.Get(line, "message")) && (rawjson.Has(line, "uuid") || rawjson.Has(line, "cwd") || rawjson.Has(line, "timestamp"))
}

// claudeSession is the state of reading a session of Claude Code.
type claudeSession struct {
	sessionReader
	titled titleSource
	// turnOf maps the uuid of a line to the id of the model's answer that the line belongs to. tail maps an answer to
	// its last line: see follow.
	turnOf, tail map[string]string
	noParents    bool // see statesNoParents
	tasks        claudeTasks
	// seen has the uuids of lines. summaries has the summaries whose leaf was not seen, by leaf, because a file
	// begins with summaries of other sessions.
	seen      map[string]bool
	summaries map[string]string
}

// titleSource is what stated the title of a session. A higher one counts, wherever in the file it is.
type titleSource int

const (
	bySummary titleSource = iota
	byModel
	byUser
)

// name sets the title, unless a higher source has stated one.
func (s *claudeSession) name(title string, from titleSource) {
	if title != "" && from >= s.titled {
		s.title, s.titled = title, from
	}
}

// maxSummaries limits the summaries whose leaf was not seen.
const maxSummaries = 1000

// summary sets the title to a summary if its leaf is in the session. If the leaf was not seen yet, the summary waits
// for it.
func (s *claudeSession) summary(title, leaf string) {
	switch {
	case leaf == "" || s.seen[leaf]:
		s.name(title, bySummary)
	case len(s.summaries) < maxSummaries:
		s.summaries[leaf] = title
	}
}

// see records the uuid of a line.
func (s *claudeSession) see(id string) {
	if id == "" {
		return
	}
	s.seen[id] = true
	if title, waits := s.summaries[id]; waits {
		delete(s.summaries, id)
		s.summary(title, id)
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

// sessionName returns the name of the file if it is a session id.
func sessionName(file string) string {
	name, ok := strings.CutSuffix(archive.BaseName(file), ".jsonl")
	if !ok || uuid.Validate(name) != nil || len(name) != 36 {
		return ""
	}
	return name
}

// claudeLine is the state of reading a line.
type claudeLine struct {
	lineRecord
	agent, session, logicalParent string
	side                          bool // of a subagent
	content                       []byte
	cwd, branch, version          string
}

// line reads a line of the session.
func (s *claudeSession) line(raw []byte, at archive.Position) error {
	l := claudeLine{lineRecord: lineRecord{Node: archive.Node{At: at}}}
	for m := range rawjson.Members(raw) {
		if !l.take(m, uuidKeys) && !l.member(m) {
			s.states(m, raw)
			l.rest.Add(m)
		}
	}
	s.see(l.ID)
	s.unordered = s.unordered || l.Parent != "" && !s.seen[l.Parent]
	ofAgent := strings.HasPrefix(archive.BaseName(s.in.Name), "agent-")
	s.id = cmp.Or(s.id, sessionName(s.in.Name), l.session)
	if l.session != s.id {
		l.rest.SetText("sessionId", l.session)
	}
	switch {
	case l.agent != "" && (l.side || ofAgent):
		l.Aside = "agent " + l.agent
	case l.side:
		l.Aside = "sidechain"
	}
	if l.Parent == "" && l.logicalParent != "" {
		l.hasParent, l.Parent = true, l.logicalParent
	}
	switch {
	case (l.kind == "user" || l.kind == "assistant") && rawjson.IsObject(l.message):
		s.message(&l.Node, l.kind, l.message, l.hasParent)
	case l.kind == "system" && rawjson.IsString(l.content):
		l.Role = "system"
		l.Body, l.Type = archive.TextBody(l.content)
		s.link(&l.Node, l.hasParent)
	default:
		s.logRecord(&l.lineRecord, raw)
		return nil
	}
	l.Metadata = l.rest.Bytes()
	s.add(l.Node)
	if l.Aside == "" || ofAgent { // whose session may not be there
		s.about.agent = "claude-code"
		s.about.version, s.about.model = cmp.Or(l.version, s.about.version), cmp.Or(l.Model, s.about.model)
		s.about.cwd, s.about.gitBranch = cmp.Or(s.about.cwd, l.cwd), cmp.Or(s.about.gitBranch, l.branch)
	}
	return nil
}

// member reads a member that describes the line. It reports whether the member is used up: most also stay in the
// metadata.
func (l *claudeLine) member(m rawjson.Member) bool {
	switch m.Key {
	case "sessionId":
		l.session = rawjson.Str(m.Value)
		return true
	case "content":
		l.content = m.Value
		return true
	case "isSidechain":
		l.side = rawjson.IsTrue(m.Value)
		return !l.side
	case "logicalParentUuid":
		l.logicalParent = rawjson.Str(m.Value)
	case "agentId":
		l.agent = rawjson.Str(m.Value)
	case "cwd":
		l.cwd = rawjson.Str(m.Value)
	case "gitBranch":
		l.branch = rawjson.Str(m.Value)
	case "version":
		l.version = rawjson.Str(m.Value)
	}
	return false
}

// states reads a member of a line that describes the session.
func (s *claudeSession) states(m rawjson.Member, line []byte) {
	switch m.Key {
	case "forkedFrom":
		s.part.ForkedFrom = cmp.Or(rawjson.Str(rawjson.Get(m.Value, "sessionId")), s.part.ForkedFrom)
	case "summary":
		if rawjson.Str(rawjson.Get(line, "type")) == "summary" {
			s.summary(rawjson.Str(m.Value), rawjson.Str(rawjson.Get(line, "leafUuid")))
		}
	case "customTitle":
		s.name(rawjson.Str(m.Value), byUser)
	case "aiTitle":
		s.name(rawjson.Str(m.Value), byModel)
	}
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

// statesNoParents reports whether every line of the file has a null parent. Then a null parent means nothing, because
// an answer or a tool result cannot begin a history.
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

// follow keeps an answer of the model in a single history. An answer consists of several lines with one message id.
// If it calls several tools at once, the next call and the result of the previous call have the same parent, but they
// are not branches.
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
