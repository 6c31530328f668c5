package agents

import (
	"cmp"
	"context"
	"iter"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// Antigravity reads sessions of Antigravity. A session is a file with one step per line. The name of its folder is
// the session id.
func Antigravity() archive.Format {
	return archive.Format{
		Name: "antigravity", Grows: true,
		Version: 1, // model, project
		Tried:   "published sessions of the command line and the editor",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				return rawjson.Has(line, "step_index", "source", "type")
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := antigravitySession{sessionReader: newSessionReader(in, yield)}
				s.about.agent, s.id = "antigravity", antigravityID(in)
				s.readLines(ctx, s.line)
			}
		},
	}
}

// antigravityID returns the session id from the path ID/.system_generated/logs/NAME.
func antigravityID(in *archive.Input) string {
	name := in.Name
	if in.DiskPath() != "" {
		name = filepath.ToSlash(in.DiskPath())
	}
	before, _, ok := strings.Cut(path.Dir(name), "/.system_generated")
	if id := path.Base(before); ok && id != "." && id != "/" {
		return id
	}
	return ""
}

// antigravityStep is before the number of a step in the id of its message.
const antigravityStep = "step "

// antigravitySession is the state of reading a session of Antigravity.
type antigravitySession struct {
	sessionReader
	model string // as the user has selected it
}

// line reads a step.
func (s *antigravitySession) line(raw []byte, at archive.Position) error {
	kind, source := rawjson.Str(rawjson.Get(raw, "type")), rawjson.Str(rawjson.Get(raw, "source"))
	n := archive.Node{At: at, Created: archive.ParseTime(rawjson.Get(raw, "created_at")), Model: rawjson.Str(rawjson.Get(raw, "model"))}
	switch {
	case kind == "USER_INPUT":
		n.Role = "user"
		text := rawjson.Str(rawjson.Get(raw, "content"))
		s.title = cmp.Or(s.title, antigravityTitle(text))
		s.model = cmp.Or(selectedModel(text), s.model)
	case kind == "PLANNER_RESPONSE":
		n.Role, n.Model = "assistant", cmp.Or(n.Model, s.model)
		s.about.model = cmp.Or(n.Model, s.about.model)
		if s.about.cwd == "" {
			s.about.cwd = commandFolder(raw)
		}
	case source == "MODEL", kind == "TOOL_RESPONSE": // what a tool did has its name as the type
		n.Role, n.Name = "tool", strings.ToLower(kind)
	default: // such as checkpoints and messages of the system
		s.log(kind, "", "", raw, n.Created, at)
		return nil
	}
	if index := rawjson.Get(raw, "step_index"); index != nil {
		n.ID = antigravityStep + string(index)
	}
	n.Give(raw)
	s.link(&n, false)
	s.add(n)
	s.sortLast()
	return nil
}

// mostLate is how many steps are looked at that may be after one that comes later in the file.
const mostLate = 4

// sortLast puts the last node before those of the steps after it that came just before: a call may be written after its
// result. A step that does not fit between the last ones stays where it is.
func (s *antigravitySession) sortLast() {
	nodes := s.part.Nodes
	last := len(nodes) - 1
	step, ok := stepOf(&nodes[last])
	if !ok {
		return
	}
	to := last
	for i, passed := last-1, 0; i >= 0 && passed <= mostLate; i-- {
		if nodes[i].Aside != "" {
			continue
		}
		before, ok := stepOf(&nodes[i])
		switch {
		case !ok || before == step:
			return
		case before < step:
			n := nodes[last]
			copy(nodes[to+1:], nodes[to:last])
			nodes[to] = n
			return
		}
		to = i
		passed++
	}
}

// stepOf returns the number of a node's step.
func stepOf(n *archive.Node) (step int, ok bool) {
	number, ok := strings.CutPrefix(n.ID, antigravityStep)
	step, err := strconv.Atoi(number)
	return step, ok && err == nil
}

// commandFolder returns the folder in which an answer runs its first command, "" if none of its calls states one.
func commandFolder(answer []byte) string {
	for _, m := range message.Decode(answer, content.TypeJSON, "assistant") {
		for i := range m.Parts {
			dir := rawjson.Str(rawjson.Get(m.Parts[i].Input, "Cwd"))
			if path.IsAbs(dir) || len(dir) > 2 && dir[1] == ':' || strings.HasPrefix(dir, `\\`) {
				return dir
			}
		}
	}
	return ""
}

// selectedModel returns the model to which a message of the user changes the settings, or "".
func selectedModel(text string) string {
	_, change, ok := strings.Cut(text[strings.LastIndex(text, "</USER_REQUEST>")+1:], "`Model Selection` from ")
	_, model, found := strings.Cut(change, " to ")
	if !ok || !found {
		return ""
	}
	model, _, _ = strings.Cut(model, "\n")
	model, _, _ = strings.Cut(model, ". ")
	return strings.TrimSuffix(model, ".")
}

// antigravityTitle returns the first line of the user's request.
func antigravityTitle(text string) string {
	if _, after, ok := strings.Cut(text, "<USER_REQUEST>"); ok {
		text, _, _ = strings.Cut(after, "</USER_REQUEST>")
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 120 {
		line = string(runes[:120]) + "…"
	}
	return line
}
