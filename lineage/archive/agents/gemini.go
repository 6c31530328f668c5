package agents

import (
	"cmp"
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// Gemini reads sessions of Gemini CLI: a file of JSON lines per session or, of older versions, one
// JSON object.
func Gemini() archive.Format {
	return archive.Format{
		Name:  "gemini",
		Tried: "a session that Gemini CLI 0.61.0 wrote and resumed, published ones that are one object; rewinds: the program's source",
		Detect: func(h archive.Head) bool {
			first := h.Object()
			return rawjson.Has(first, "sessionId", "projectHash") || isGeminiMessage(first)
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := geminiSession{sessionReader: newSessionReader(in, yield), place: make(map[string]int), nodes: make(map[string]geminiNode)}
				s.about.agent, s.ending = "gemini", s.finish
				s.read(ctx)
			}
		},
	}
}

func isGeminiMessage(record []byte) bool {
	switch rawjson.Str(rawjson.Get(record, "type")) {
	case "user", "gemini":
		return rawjson.Has(record, "id", "timestamp", "content") && !rawjson.Has(record, "message")
	}
	return false
}

// geminiSession is the state of reading a session of Gemini CLI. A record can replace earlier messages: a message
// with the same id, all from a message on ($rewindTo), or all ($set). Messages since the last prompt wait, because
// the program writes an answer again when its tools have run.
type geminiSession struct {
	sessionReader
	headed  bool // the first header was read
	order   []geminiMessage
	waiting int                   // number of messages at the end of order that have no node yet
	place   map[string]int        // index of a message in order
	nodes   map[string]geminiNode // the last node of each message
}

// geminiMessage is a message of the current history.
type geminiMessage struct {
	id   string       // in the file
	node string       // id of its node
	sum  uint64       // checksum of its object
	n    archive.Node // while it waits
	// context is set if it is what the program states before a history.
	context bool
}

// geminiNode is a node of a message: its id, the id of its parent, and the number of nodes that the message has.
type geminiNode struct {
	id, parent string
	count      int
}

var geminiSeed = maphash.MakeSeed()

// read reads both variants.
func (s *geminiSession) read(ctx context.Context) {
	first := s.in.Head().Lines(1)
	if len(first) > 0 && rawjson.Check(first[0]) == nil {
		s.readLines(ctx, func(raw []byte, at archive.Position) error {
			s.record(raw, at)
			return nil
		})
		return
	}
	s.readObjects(ctx, s.record)
}

// record reads a record.
func (s *geminiSession) record(raw []byte, at archive.Position) {
	switch {
	case rawjson.IsString(rawjson.Get(raw, "$rewindTo")):
		s.settle()
		s.cut(s.place[rawjson.Str(rawjson.Get(raw, "$rewindTo"))]) // the first for an unknown id, as the program does
		s.part.Current = s.tip()
		s.log("$rewindTo", "", "", raw, s.part.Updated, at)
	case rawjson.IsObject(rawjson.Get(raw, "$set")):
		s.header(rawjson.Get(raw, "$set"), at, true)
		s.log("$set", "", "", raw, s.part.Updated, at)
	case rawjson.IsString(rawjson.Get(raw, "id")):
		s.message(raw, at)
	case rawjson.IsString(rawjson.Get(raw, "sessionId")):
		if s.headed {
			s.log("header", "", "", raw, s.part.Updated, at)
		}
		s.header(raw, at, false)
		s.headed = true
	default:
		s.log("", "", "", raw, s.part.Updated, at)
	}
}

// header reads a record about the session. If replace is set, its messages become the history from now on, as far as
// they differ from what was read.
func (s *geminiSession) header(raw []byte, at archive.Position, replace bool) {
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "sessionId":
			s.id = cmp.Or(s.id, rawjson.Str(m.Value))
		case "startTime":
			s.at(archive.ParseTime(m.Value))
		case "lastUpdated":
			s.at(archive.ParseTime(m.Value))
		case "summary":
			s.title = cmp.Or(rawjson.Str(m.Value), s.title)
		case "messages":
			if replace {
				s.replace(m.Value, at)
				continue
			}
			for raw := range rawjson.Elements(m.Value) {
				s.record(raw, at)
			}
		default:
			if !replace && !s.headed {
				s.field(m, at)
			}
		}
	}
}

// replace reads a list of messages that becomes the history from now on. The program writes the list from the input
// of the model when it resumes a session. So messages with known ids lack members that their own records have, and
// the parts of a message can be messages of their own. A known message therefore stays as it is, and an unknown one
// before a known one is only kept in the log.
func (s *geminiSession) replace(list []byte, at archive.Position) {
	s.settle()
	s.cut(0)
	last, i := -1, 0
	for raw := range rawjson.Elements(list) {
		id := rawjson.Str(rawjson.Get(raw, "id"))
		if _, known := s.nodes[id]; known {
			last = i
		}
		i++
	}
	i = 0
	for raw := range rawjson.Elements(list) {
		id := rawjson.Str(rawjson.Get(raw, "id"))
		node, known := s.nodes[id]
		_, logged := s.standIn[id]
		switch {
		case logged, id == "", !known && i < last:
		case known && s.waiting == 0 && node.parent == s.tip():
			s.place[id] = len(s.order)
			s.order = append(s.order, geminiMessage{id: id, node: node.id, context: isSessionContext(raw)})
		default:
			s.message(raw, at)
		}
		i++
	}
	if s.waiting == 0 && !s.begins() { // else it is about to state the rest of the history
		s.part.Current = s.tip()
	}
}

// begins reports whether the history has only what the program states before one.
func (s *geminiSession) begins() bool {
	return !slices.ContainsFunc(s.order, func(m geminiMessage) bool { return !m.context })
}

// tip returns the id of the last node of the history.
func (s *geminiSession) tip() string {
	if len(s.order) == 0 {
		return ""
	}
	return s.order[len(s.order)-1].node
}

// message reads a message. It replaces a waiting message with the same id. If the message with that id has a node
// already, it becomes another version of it.
func (s *geminiSession) message(raw []byte, at archive.Position) {
	n := archive.Node{At: at, Created: archive.ParseTime(rawjson.Get(raw, "timestamp")), ID: rawjson.Str(rawjson.Get(raw, "id"))}
	switch kind := rawjson.Str(rawjson.Get(raw, "type")); kind {
	case "user":
		n.Role = "user"
	case "gemini":
		n.Role, n.Model = "assistant", rawjson.Str(rawjson.Get(raw, "model"))
		s.about.model = cmp.Or(n.Model, s.about.model)
	default: // info, warning, error
		s.log(kind, "", "", raw, n.Created, at)
		return
	}
	n.Give(raw)
	message := geminiMessage{id: n.ID, sum: maphash.Bytes(geminiSeed, raw), n: n, context: isSessionContext(raw)}
	i, there := s.place[n.ID]
	switch {
	case there && s.order[i].sum == message.sum:
		return
	case there && i >= len(s.order)-s.waiting:
		was := s.order[i]
		s.log(was.n.Role, "", "", was.n.Body, was.n.Created, was.n.At)
		s.order[i] = message
		return
	case there:
		s.settle()
		if i == len(s.order)-1 {
			s.cut(i)
			break
		}
		s.node(&message, i)
		return
	case n.Role == "user" && s.waiting > 0 && repeatsResults(raw, s.order[len(s.order)-1].n.Body):
		s.log("user", n.ID, "", raw, n.Created, at)
		return
	case n.Role == "user":
		s.settle()
	}
	s.place[message.id] = len(s.order)
	s.order = append(s.order, message)
	s.waiting++
}

// repeatsResults reports whether a message of the user has only results that the previous answer has too.
func repeatsResults(user, answer []byte) bool {
	has := make(map[string]bool)
	for call := range rawjson.Elements(rawjson.Get(answer, "toolCalls")) {
		has[rawjson.Str(rawjson.Get(call, "id"))] = rawjson.Get(call, "result") != nil
	}
	all := false
	for part := range rawjson.Elements(rawjson.Get(user, "content")) {
		if all = has[rawjson.Str(rawjson.Get(rawjson.Get(part, "functionResponse"), "id"))]; !all {
			return false
		}
	}
	return all
}

// cut removes the messages from index i on from the history. They stay in a branch.
func (s *geminiSession) cut(i int) {
	if i >= len(s.order) {
		return
	}
	for _, m := range s.order[i:] {
		delete(s.place, m.id)
	}
	s.order = s.order[:i]
}

// finish creates nodes for the messages that wait, unless the program has only stated its context. It does so in a file of
// its own when it resumes a session, which goes on in its first file. An answer at the end is written again when its tools have run.
func (s *geminiSession) finish() {
	if last := len(s.order) - 1; s.waiting > 0 && s.holds(&s.order[last].n) {
		s.cut(last)
		s.waiting--
	}
	if len(s.order) > s.waiting || !s.begins() {
		s.settle()
	}
}

// holds reports whether the last message is left out because the program may write it again.
func (s *geminiSession) holds(n *archive.Node) bool {
	if n.Role != "assistant" {
		return false
	}
	changed := n.Created
	if s.part.Updated.After(changed) {
		changed = s.part.Updated
	}
	calls := false
	for call := range rawjson.Elements(rawjson.Get(n.Body, "toolCalls")) {
		if calls = true; rawjson.IsNull(rawjson.Get(call, "result")) {
			return s.in.Holds(changed, false)
		}
	}
	text := rawjson.Get(n.Body, "content")
	return !calls && s.in.Holds(changed, !rawjson.IsNull(text) && string(text) != `""`)
}

// isSessionContext reports whether a message is what the program states before a history.
func isSessionContext(raw []byte) bool {
	content := rawjson.Get(raw, "content")
	for part := range rawjson.Elements(content) {
		content = rawjson.Get(part, "text")
		break
	}
	return strings.HasPrefix(rawjson.Str(content), "<"+message.SessionContext+">")
}

// settle creates nodes for the messages that wait.
func (s *geminiSession) settle() {
	for i := len(s.order) - s.waiting; i < len(s.order); i++ {
		s.node(&s.order[i], i)
		s.order[i].n = archive.Node{}
	}
	s.waiting = 0
}

// node adds the node of a message at an index of the history. Only the first node of a message has the message's id.
func (s *geminiSession) node(m *geminiMessage, i int) {
	node := s.nodes[m.id]
	if node.count++; node.count == 1 {
		m.node = m.id
	} else {
		m.node = m.id + "#" + strconv.Itoa(node.count)
	}
	n := m.n
	n.ID, n.Root = m.node, i == 0
	if i > 0 {
		n.Parent = s.order[i-1].node
	}
	s.nodes[m.id] = geminiNode{m.node, n.Parent, node.count}
	s.add(n)
	s.part.Current = s.tip()
}
