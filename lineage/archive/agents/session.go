package agents

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// sessionReader is the state of reading a session of a coding agent, which is yielded in parts.
type sessionReader struct {
	in    *archive.Input
	yield func(*archive.Conversation, error) bool
	part  archive.Conversation // read since the last part
	bytes int
	first bool   // a part was yielded already
	id    string // empty until it is known
	local string // Conversation.Local
	title string // as stated by the agent
	about about
	// sharedIDs is Conversation.SharedIDs.
	sharedIDs bool

	// spoken is set if files without a message are not imported. Records before the first message are held until it is read.
	spoken bool
	// ending, when not nil, is called before the last part is yielded.
	ending func()
	// known has the ids of messages read, or is nil if the input may not have all parents.
	known map[string]bool
	// standIn maps a record that is not a message to the message that stands for it as a parent.
	standIn map[string]string
	asides  map[string]bool // those that were begun
	// unordered is set if a node of the part may be before its parent.
	unordered bool
}

func newSessionReader(in *archive.Input, yield func(*archive.Conversation, error) bool) sessionReader {
	return sessionReader{in: in, yield: yield, standIn: make(map[string]string), asides: make(map[string]bool)}
}

// readLines calls line for each line with an object, and yields the nodes that line adds. An error of line is
// reported as damage.
func (s *sessionReader) readLines(ctx context.Context, line func(raw []byte, at archive.Position) error) {
	s.readItems(s.in.Lines(ctx), line)
}

// readItems is like readLines, for lines that are in no file of lines.
func (s *sessionReader) readItems(lines iter.Seq2[archive.Item, error], line func(raw []byte, at archive.Position) error) {
	for item, err := range lines {
		if item.Pause {
			if !s.pause() {
				return
			}
			continue
		}
		if err == nil {
			bad := item.Valid()
			if repair := item.BeingWritten(bad); repair != nil && (s.begun() || s.id != "") {
				s.part.Repairs = append(s.part.Repairs, repair)
				continue
			}
			switch {
			case bad != nil:
			case !rawjson.IsObject(item.Raw):
				bad = archive.Malformed("not an object")
			default:
				bad = line(item.Raw, item.At)
			}
			if bad != nil {
				err = archive.Damaged(item.At, bad)
			}
		}
		if err != nil {
			if !s.yield(nil, err) {
				return
			}
			continue
		}
		if s.bytes += len(item.Raw); (s.bytes >= archive.PartBytes || len(s.part.Nodes) >= archive.PartNodes) && s.id != "" && !s.send(true) {
			return
		}
	}
	s.end()
}

// readObjects calls object for each object of an input that is not read line by line, and yields the nodes that it adds.
func (s *sessionReader) readObjects(ctx context.Context, object func(raw []byte, at archive.Position)) {
	for item, err := range s.in.Items(ctx) {
		if err == nil && !rawjson.IsObject(item.Raw) {
			err = archive.Damaged(item.At, archive.Malformed("not an object"))
		}
		if err != nil {
			if !s.yield(nil, err) {
				return
			}
			continue
		}
		object(item.Raw, item.At)
	}
	s.end()
}

// end yields the last part.
func (s *sessionReader) end() {
	if s.ending != nil {
		s.ending()
	}
	if s.begun() {
		s.send(false)
	}
}

// pause yields what was read since the last part. Before the session has an id and has begun, it yields an empty part.
func (s *sessionReader) pause() bool {
	if s.id == "" || !s.begun() {
		waiting := &archive.Conversation{SourceID: s.id, More: true}
		if len(s.part.Nodes) > 0 {
			waiting.SourceID = ""
		}
		return s.yield(waiting, nil)
	}
	return s.send(true)
}

// begun reports whether the session has any node or, if spoken is set, any message.
func (s *sessionReader) begun() bool {
	return s.first || slices.ContainsFunc(s.part.Nodes, func(n archive.Node) bool { return !s.spoken || n.Aside != lineage.AsideLog })
}

// send yields the nodes read since the last part.
func (s *sessionReader) send(more bool) bool {
	if s.unordered {
		s.part.Nodes, s.unordered = s.ordered(s.part.Nodes), false
	}
	c := s.part
	c.SourceID, c.Local, c.Title, c.Metadata, c.SharedIDs, c.More = s.id, s.local, s.title, s.about.bytes(), s.sharedIDs, more
	c.Copies = true
	s.part, s.bytes, s.first = archive.Conversation{}, 0, true
	return s.yield(&c, nil)
}

// ordered returns nodes with each after its parent, if that is one of them, and else in their order.
func (s *sessionReader) ordered(nodes []archive.Node) []archive.Node {
	at := make(map[string]int, len(nodes))
	for i := range nodes {
		if id := nodes[i].ID; id != "" {
			if _, known := at[id]; !known {
				at[id] = i
			}
		}
	}
	waits := make(map[int][]int) // for a node: its children that came before it
	out, done := make([]archive.Node, 0, len(nodes)), make([]bool, len(nodes))
	put := func(first int) {
		for next := []int{first}; len(next) > 0; {
			i := next[len(next)-1]
			if next = next[:len(next)-1]; done[i] {
				continue // it began its circle
			}
			out, done[i] = append(out, nodes[i]), true
			for _, child := range slices.Backward(waits[i]) {
				next = append(next, child)
			}
		}
	}
	for i := range nodes {
		n := &nodes[i]
		n.Parent = s.resolve(n.Parent)
		if parent, known := at[n.Parent]; known && parent != i && !done[parent] {
			waits[parent] = append(waits[parent], i)
			continue
		}
		put(i)
	}
	for i, passed := 0, make([]bool, len(nodes)); i < len(nodes); i++ { // those that are their own ancestors, and what follows them
		if !done[i] {
			first := i
			for ; !passed[first]; first = at[nodes[first].Parent] {
				passed[first] = true
			}
			nodes[first].Parent = ""
			put(first)
		}
	}
	return out
}

// add adds a node of the conversation or of a subagent.
func (s *sessionReader) add(n archive.Node) {
	if s.known != nil && n.ID != "" {
		s.known[n.ID] = true
	}
	s.part.Nodes = append(s.part.Nodes, n)
	s.at(n.Created)
}

// at updates the times of the conversation with the time of a record.
func (s *sessionReader) at(t time.Time) {
	if s.part.Created.IsZero() && !s.first {
		s.part.Created = t
	}
	if t.After(s.part.Updated) {
		s.part.Updated = t
	}
}

// log keeps a record that is not a message in the log, without the session id, which differs in copies. If the record
// has an id, records whose parent it is follow the message before it.
func (s *sessionReader) log(kind, id, parent string, raw []byte, created time.Time, at archive.Position) {
	if id != "" {
		s.standIn[id] = s.resolve(parent)
	}
	if kind == "" {
		kind = "unknown"
	}
	if id := rawjson.Get(raw, "sessionId"); s.id != "" && rawjson.Str(id) == s.id {
		raw = rawjson.Remove(raw, "sessionId")
	}
	s.part.Nodes = append(s.part.Nodes, archive.Node{
		Role: kind, Body: raw, Type: content.TypeJSON, Created: created, Aside: lineage.AsideLog, Root: s.begin(lineage.AsideLog), At: at,
	})
}

// field keeps a field of the session, a small one in the metadata, a large one in the log.
func (s *sessionReader) field(m rawjson.Member, at archive.Position) {
	if len(m.Value) < archive.LargeField {
		s.about.more.Add(m)
		return
	}
	s.log("field", "", "", rawjson.Compact(m.Value), time.Time{}, at)
	s.part.Nodes[len(s.part.Nodes)-1].Name = m.Key
}

// begin reports whether this is the first node of an aside.
func (s *sessionReader) begin(aside string) bool {
	if s.asides[aside] {
		return false
	}
	s.asides[aside] = true
	return true
}

// resolve returns the id of the message that a record id stands for.
func (s *sessionReader) resolve(id string) string {
	if above, ok := s.standIn[id]; ok {
		return above
	}
	return id
}

// link sets the parent of a node to the message that its record states, or makes the node the root of a history. A
// record without a parent, or with one that was not read, follows the previous record.
func (s *sessionReader) link(n *archive.Node, hasParent bool) {
	n.Parent = s.resolve(n.Parent)
	if n.Parent != "" && (n.Parent == n.ID || s.known != nil && !s.known[n.Parent]) {
		at := n.At
		at.Inside = "message " + n.ID
		s.part.Repairs = append(s.part.Repairs, archive.Damaged(at, archive.Malformed("its parent %q is missing; it is put after the message before it", n.Parent)))
		hasParent, n.Parent = false, ""
	}
	begins := s.begin("history " + n.Aside)
	if n.Parent == "" && (hasParent || begins) {
		n.Root = true
	}
}

// about is what sessions of all agents state besides their messages. It becomes the metadata of the conversation,
// under the same keys for all agents.
type about struct {
	// agent is the name of the format, version the version of the program, model the model used last. cwd and
	// gitBranch are the working directory and branch in which the session began.
	agent, version, model, cwd, gitBranch string
	// copied is the session with which the copies began that led to this one.
	copied string
	more   rawjson.Object // other fields
}

// bytes returns the metadata, nil while the agent is unknown.
func (a *about) bytes() []byte {
	if a.agent == "" {
		return nil
	}
	var o rawjson.Object
	o.SetText(archive.KeyAgent, a.agent)
	o.SetText(archive.KeyVersion, a.version)
	o.SetText(archive.KeyModel, a.model)
	o.SetText(archive.KeyProject, a.cwd)
	o.SetText(archive.KeyGitBranch, a.gitBranch)
	o.SetText(archive.KeyCopiedFrom, a.copied)
	o.Join(&a.more)
	return o.Bytes()
}
