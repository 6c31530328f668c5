package agents

import (
	"cmp"
	"context"
	"iter"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Names of the files of a task.
const (
	clineTask    = "api_conversation_history.json"
	clineScreen  = "ui_messages.json"
	clineSession = ".messages.json" // ends those of a session
)

// Cline reads sessions of Cline and tasks of its editor extension and of Roo Code. A session of Cline is a file with
// an object for the session and one for each subagent. A task has a file with the messages for the model and one with
// the messages on the screen, which have the cost of requests.
func Cline() archive.Format {
	return archive.Format{
		Name: "cline", Beside: true,
		Tried: "sessions that Cline 3.0.65 wrote; published tasks of the extension for VS Code; Roo Code: documents",
		Detect: func(h archive.Head) bool {
			switch first := h.Object(); h.Name {
			case clineTask:
				return rawjson.Has(first, "role", "content")
			case clineScreen:
				return rawjson.Has(first, "ts", "type") && (rawjson.Has(first, "say") || rawjson.Has(first, "ask"))
			default:
				return strings.HasSuffix(h.Name, clineSession) && rawjson.Has(first, "sessionId", "messages") || rawjson.Has(first, "version", "sessionId", "origin", "messages")
			}
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := clineReader{sessionReader: newSessionReader(in, yield)}
				s.about.agent = "cline"
				s.read(ctx)
			}
		},
	}
}

// clineReader is the state of reading a file of Cline.
type clineReader struct {
	sessionReader
	aside, last string
	model       string // that the environment of a task of Roo Code had last
}

func (s *clineReader) read(ctx context.Context) {
	name := archive.BaseName(s.in.Name)
	if name == clineTask || name == clineScreen {
		s.id = folderOf(s.in)
	}
	for item, err := range s.in.Items(ctx) {
		switch {
		case err == nil && !rawjson.IsObject(item.Raw):
			err = archive.Damaged(item.At, archive.Malformed("not an object"))
		case err != nil:
		case name == clineTask:
			s.local = cmp.Or(s.local, clineLocal(clineText(item.Raw)))
			s.ofTask(item.Raw, item.At)
		case name == clineScreen:
			if s.local == "" {
				first := rawjson.First(beside(s.in, clineTask))
				s.local = clineLocal(cmp.Or(clineText(first), rawjson.Str(rawjson.Get(item.Raw, "text"))))
			}
			s.onScreen(item.Raw, item.At)
		default:
			s.whole(item.Raw, item.At)
		}
		if err != nil && !s.yield(nil, err) {
			return
		}
		if s.bytes += len(item.Raw); s.bytes >= archive.PartBytes && s.id != "" && s.begun() && !s.send(true) {
			return
		}
	}
	s.end()
}

// whole reads a session, or the session of a subagent.
func (s *clineReader) whole(raw []byte, at archive.Position) {
	origin := rawjson.Get(raw, "origin")
	s.id = rawjson.Str(rawjson.Get(raw, "sessionId"))
	s.about.version = rawjson.Str(rawjson.Get(origin, "version"))
	first := true
	from := ""
	if agent := rawjson.Str(rawjson.Get(origin, "subagent")); agent != "" {
		s.aside = "agent " + agent
		s.id, _, _ = strings.Cut(cmp.Or(rawjson.Str(rawjson.Get(origin, "parentThreadId")), s.id), "__")
		for message := range rawjson.Elements(rawjson.Get(raw, "messages")) {
			from = s.startedBy(message)
			break
		}
	} else if about := beside(s.in, s.id+".json"); rawjson.IsObject(about) {
		s.about.cwd = rawjson.Str(rawjson.Get(about, "cwd"))
		s.title = rawjson.Str(rawjson.Get(rawjson.Get(about, "metadata"), "title"))
	}
	for message := range rawjson.Elements(rawjson.Get(raw, "messages")) {
		if !rawjson.IsObject(message) {
			continue
		}
		at.Inside = "message " + rawjson.Str(rawjson.Get(message, "id"))
		n := s.node(message, at)
		n.ID = rawjson.Str(rawjson.Get(message, "id"))
		if first && from != "" {
			n.Parent = from
		}
		first = false
		s.place(n)
	}
	if system := rawjson.Get(raw, "system_prompt"); rawjson.IsString(system) && s.aside == "" {
		s.log("system_prompt", "", "", rawjson.Compact(system), time.Time{}, at)
	}
}

// startedBy returns the message of the session whose call has the subagent's first message as its task. It is empty
// unless exactly one call matches.
func (s *clineReader) startedBy(message []byte) (from string) {
	task := ""
	for block := range rawjson.Elements(rawjson.Get(message, "content")) {
		task = rawjson.Str(rawjson.Get(block, "text"))
		break
	}
	session := beside(s.in, s.id+clineSession)
	for m := range rawjson.Elements(rawjson.Get(session, "messages")) {
		for block := range rawjson.Elements(rawjson.Get(m, "content")) {
			if prompt := rawjson.Get(rawjson.Get(block, "input"), "task"); rawjson.IsString(prompt) && rawjson.Str(prompt) == task {
				if from != "" {
					return ""
				}
				from = rawjson.Str(rawjson.Get(m, "id"))
			}
		}
	}
	return from
}

// node returns a message as a node. Members that Roo Code adds when a message is condensed are left out, because they
// name a later message.
func (s *clineReader) node(raw []byte, at archive.Position) archive.Node {
	n := archive.Node{At: at, Role: cmp.Or(rawjson.Str(rawjson.Get(raw, "role")), "unknown"), Created: archive.ParseTime(rawjson.Get(raw, "ts"))}
	model := rawjson.Get(raw, "modelInfo")
	n.Model = cmp.Or(rawjson.Str(rawjson.Get(model, "id")), rawjson.Str(rawjson.Get(model, "modelId")))
	if n.Role == "assistant" {
		n.Model = cmp.Or(n.Model, s.model)
	}
	s.about.model = cmp.Or(n.Model, s.about.model)
	if rawjson.Has(raw, "condenseParent") || rawjson.Has(raw, "truncationParent") {
		n.Give(raw, "condenseParent", "truncationParent")
	} else {
		n.Give(raw)
	}
	return n
}

// place adds a message after the previous one.
func (s *clineReader) place(n archive.Node) {
	n.Aside = s.aside
	n.Root = s.begin("history "+n.Aside) && n.Parent == ""
	if !n.Root && n.Parent == "" {
		n.Parent = s.last
	}
	s.last = n.ID
	s.add(n)
}

// ofTask reads a message of a task.
func (s *clineReader) ofTask(raw []byte, at archive.Position) {
	n := s.node(raw, at)
	if n.Role == "user" {
		for text := range clineTexts(raw) {
			s.model = cmp.Or(rooModel(text), s.model)
		}
		s.about.cwd = cmp.Or(s.about.cwd, clineFolder(raw))
	}
	if n.Role == "user" && s.title == "" {
		s.title = clineTitle(raw)
	}
	s.place(n)
}

// onScreen reads a message on the screen that reports the cost of a finished request.
func (s *clineReader) onScreen(raw []byte, at archive.Position) {
	if rawjson.Str(rawjson.Get(raw, "say")) != "api_req_started" || rawjson.IsTrue(rawjson.Get(raw, "partial")) {
		return
	}
	text := []byte(rawjson.Str(rawjson.Get(raw, "text")))
	if rawjson.Check(text) != nil || !rawjson.Has(text, "tokensIn", "tokensOut") {
		return
	}
	var o rawjson.Object
	o.Set("ts", rawjson.Get(raw, "ts"))
	if model := rawjson.Get(raw, "modelInfo"); model != nil {
		o.Set("modelInfo", model)
	} else {
		s.model = cmp.Or(rooModel(rawjson.Str(rawjson.Get(text, "request"))), s.model)
		o.SetText("model", s.model)
	}
	for m := range rawjson.Members(text) {
		if m.Key != "request" { // which the messages have
			o.Add(m)
		}
	}
	s.log("api_req_started", "", "", o.Bytes(), archive.ParseTime(rawjson.Get(raw, "ts")), at)
}

// rooModel returns the model in the description of the environment that Roo Code adds to messages of the user, or "".
func rooModel(text string) string {
	_, environment, ok := strings.Cut(text, "<environment_details>")
	if !ok {
		return ""
	}
	_, model, _ := strings.Cut(environment, "\n<model>")
	model, _, ok = strings.Cut(model, "</model>\n")
	if !ok || len(model) > maxModel || strings.ContainsAny(model, "<>\n") {
		return ""
	}
	return model
}

// maxModel is the maximum length of a model's name in a text, in bytes.
const maxModel = 256

// clineFolder returns the working directory stated in the first message's description of the environment.
func clineFolder(message []byte) string {
	for _, before := range []string{"# Current Working Directory (", "# Current Workspace Directory ("} {
		for text := range clineTexts(message) {
			if _, after, ok := strings.Cut(text, before); ok {
				if dir, _, ok := strings.Cut(after, ") "); ok && len(dir) < 4096 && !strings.Contains(dir, "\n") {
					return dir
				}
			}
		}
	}
	return ""
}

// clineTitle returns the start of the task in the first message.
func clineTitle(message []byte) string {
	for text := range clineTexts(message) {
		if task, ok := statedTask(text); ok {
			line, _, _ := strings.Cut(task, "\n")
			if runes := []rune(line); len(runes) > 120 {
				line = string(runes[:120]) + "…"
			}
			return line
		}
	}
	return ""
}

// statedTask returns the task in a text of the first message.
func statedTask(text string) (task string, ok bool) {
	if task, ok = strings.CutPrefix(strings.TrimSpace(text), "<task>"); ok {
		task, _, _ = strings.Cut(task, "</task>")
	}
	return strings.TrimSpace(task), ok
}

// clineText returns the task that the first message states, or else its first text. The first object on the screen has the same.
func clineText(message []byte) string {
	for text := range clineTexts(message) {
		if task, ok := statedTask(text); ok {
			return task
		}
		return text
	}
	return ""
}

// clineLocal returns what tells a task from others that were begun in the same millisecond, on other machines: a hash of its text.
func clineLocal(text string) string { return archive.Mark(strings.TrimSpace(text)) }

// clineTexts yields the texts of a message.
func clineTexts(message []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		content := rawjson.Get(message, "content")
		if rawjson.IsString(content) {
			yield(rawjson.Str(content))
			return
		}
		for block := range rawjson.Elements(content) {
			if text := rawjson.Get(block, "text"); rawjson.IsString(text) && !yield(rawjson.Str(text)) {
				return
			}
		}
	}
}

// folderOf returns the name of the folder that contains the input, empty if unknown.
func folderOf(in *archive.Input) string {
	dir := path.Dir(in.Name)
	if dir == "." && in.DiskPath() != "" {
		dir = filepath.ToSlash(filepath.Dir(in.DiskPath()))
	}
	if name := path.Base(dir); name != "." && name != "/" && name != ".." {
		return name
	}
	return ""
}
