package agents

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// OpenCodeFiles reads sessions of OpenCode versions without a database: a file for each session, message and part, in
// neighbouring folders. The input is the file of a session. Messages get the form that they have in the database,
// which OpenCode has filled from these files.
func OpenCodeFiles() archive.Format {
	known := openCodeParents{parents: make(map[string]string)}
	return archive.Format{
		Name: "opencode-files", Beside: true, Bare: true,
		Tried: "published sessions", IsBeside: isStored,
		Detect: func(h archive.Head) bool {
			return strings.HasPrefix(h.Name, "ses_") && rawjson.Has(h.Object(), "id", "time") && rawjson.Has(h.Object(), "projectID")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := openCodeStorage{sessionReader: newSessionReader(in, yield), known: &known, calls: make(map[string]string), read: make(map[string]bool)}
				s.about.agent = "opencode"
				s.whole(ctx)
			}
		},
	}
}

// isStored reports whether a file is one of a session, a message or a part of one, or of its project, and the session is in the source.
func isStored(in *archive.Input) bool {
	folders := strings.Split(filepath.ToSlash(in.Name), "/")
	id, isJSON := strings.CutSuffix(folders[len(folders)-1], ".json")
	if in.DiskPath() == "" || !isJSON {
		return false
	}
	if n := len(folders); n >= 2 && folders[n-2] == "project" {
		info, err := os.Lstat(filepath.Join(in.DiskPath(), "../../session", id))
		return err == nil && info.IsDir()
	} else if n < 3 {
		return false
	}
	storage := filepath.Join(in.DiskPath(), "../../..")
	session := folders[len(folders)-2]
	switch folders[len(folders)-3] {
	case "message":
	case "part":
		part := in.Head().Object()
		message := session
		session = rawjson.Str(rawjson.Get(part, "sessionID"))
		if !isPlainName(session) || !isFile(filepath.Join(storage, "message", session, message+".json")) {
			return false
		}
	default:
		return false
	}
	projects, _ := os.ReadDir(filepath.Join(storage, "session"))
	return slices.ContainsFunc(projects, func(p os.DirEntry) bool { return isFile(filepath.Join(storage, "session", p.Name(), session+".json")) })
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// openCodeStorage is the state of reading a session in the storage folder.
type openCodeStorage struct {
	sessionReader
	root    *os.Root // the storage folder
	project string
	known   *openCodeParents
	calls   map[string]string // by session of a subagent, the message that started it
	read    map[string]bool   // sessions that were read
}

// openCodeParents caches, by file, the session that each session is a subagent of.
type openCodeParents struct {
	sync.Mutex
	parents map[string]string
}

// Limits for the files of a session.
const (
	maxStored    = 1_000_000 // files in a folder
	maxSubagents = 16        // nesting
)

func (s *openCodeStorage) whole(ctx context.Context) {
	at := archive.Position{File: s.in.Name}
	item, err := s.in.ReadAll()
	switch {
	case err != nil:
	case rawjson.Check(item) != nil || !rawjson.IsObject(item[rawjson.SkipSpace(item, 0):]):
		err = archive.Malformed("not a JSON object")
	case s.in.DiskPath() == "":
		err = archive.Malformed("its messages are in other files: import the folder \"storage\" that it is in")
	default:
		folder := filepath.Dir(s.in.DiskPath())
		s.project = filepath.Base(folder)
		s.root, err = os.OpenRoot(filepath.Dir(filepath.Dir(folder)))
	}
	if err != nil {
		s.yield(nil, archive.Damaged(at, err))
		return
	}
	defer s.root.Close()
	item = item[rawjson.SkipSpace(item, 0):]
	if s.isPart(rawjson.Str(rawjson.Get(item, "parentID"))) {
		return // it is read with the session that started it
	}
	s.id = rawjson.Str(rawjson.Get(item, "id"))
	if title := rawjson.Str(rawjson.Get(item, "title")); !strings.HasPrefix(title, "New session - ") {
		s.title = title
	}
	s.about.version = rawjson.Str(rawjson.Get(item, "version"))
	s.about.cwd = cmp.Or(rawjson.Str(rawjson.Get(item, "directory")), rawjson.Str(rawjson.Get(s.file("project", s.project+".json"), "worktree")))
	times := rawjson.Get(item, "time")
	s.at(archive.ParseTime(rawjson.Get(times, "created")))
	if s.messages(ctx, s.id, "", 0) {
		s.at(archive.ParseTime(rawjson.Get(times, "updated")))
		s.end()
	}
}

// isPart reports whether a session belongs to a subagent. It is then read with the session at the top, which has no
// parent.
func (s *openCodeStorage) isPart(parent string) bool {
	for depth := 0; parent != "" && depth < maxSubagents; depth++ {
		raw := s.file("session", s.project, parent+".json")
		if raw == nil {
			return depth > 0
		}
		if parent = rawjson.Str(rawjson.Get(raw, "parentID")); parent == "" {
			return true
		}
	}
	return false // no parent, or sessions that are each other's parents
}

// childrenOf returns the sessions of the subagents of a session, in order.
func (s *openCodeStorage) childrenOf(session string) (children []string) {
	for _, id := range s.names("session", s.project) {
		if s.parentOf(id) == session {
			children = append(children, id)
		}
	}
	return children
}

// parentOf returns the session that started the subagent of a session, empty for none. The result never changes, so
// it is cached.
func (s *openCodeStorage) parentOf(id string) string {
	path := filepath.Join(s.root.Name(), s.project, id)
	s.known.Lock()
	parent, known := s.known.parents[path]
	s.known.Unlock()
	if known {
		return parent
	}
	raw := s.file("session", s.project, id+".json")
	if !rawjson.IsObject(raw) {
		return ""
	}
	parent = rawjson.Str(rawjson.Get(raw, "parentID"))
	s.known.Lock()
	s.known.parents[path] = parent
	s.known.Unlock()
	return parent
}

// startedSession returns the session of the subagent that a part started.
func startedSession(part []byte) string {
	return rawjson.Str(rawjson.Get(rawjson.Get(rawjson.Get(part, "state"), "metadata"), "sessionId"))
}

// messages reads the messages of a session and of its subagents. It returns false when the caller wants no more.
func (s *openCodeStorage) messages(ctx context.Context, session, aside string, depth int) bool {
	all, ok := s.messagesOf(ctx, session)
	if !ok {
		return false
	}
	s.read[session] = true
	last := "" // id of the message before
	for i := range all {
		if context.Cause(ctx) != nil {
			return false
		}
		n := all[i].node
		n.Parent, n.Aside = last, aside
		if last == "" {
			n.Parent = s.calls[session]
			n.Root = n.Parent == ""
		}
		size, added := s.addMessage(&n, all[i].raw)
		if !added {
			continue
		}
		last = n.ID
		if s.bytes += size; s.bytes >= archive.PartBytes && !s.send(true) {
			return false
		}
	}
	if depth == maxSubagents {
		return true
	}
	for _, child := range s.childrenOf(session) {
		if !s.read[child] && !s.messages(ctx, child, "agent "+child, depth+1) {
			return false
		}
	}
	return true
}

// openCodeFile is the file of a message, without its parts.
type openCodeFile struct {
	node archive.Node // id, time and position
	raw  []byte
}

// messagesOf returns the messages of a session by time. ok is false when the caller wants no more.
func (s *openCodeStorage) messagesOf(ctx context.Context, session string) (all []openCodeFile, ok bool) {
	for _, id := range s.names("message", session) {
		raw := s.file("message", session, id+".json")
		at := archive.Position{File: s.in.Name, Inside: "message " + id}
		if !rawjson.IsObject(raw) {
			if context.Cause(ctx) != nil || !s.yield(nil, archive.Damaged(at, archive.Malformed("not a JSON object"))) {
				return nil, false
			}
			continue
		}
		created := archive.ParseTime(rawjson.Get(rawjson.Get(raw, "time"), "created"))
		all = append(all, openCodeFile{archive.Node{ID: id, Created: created, At: at}, raw})
	}
	slices.SortStableFunc(all, func(a, b openCodeFile) int {
		return cmp.Or(cmp.Compare(a.node.Created.UnixMilli(), b.node.Created.UnixMilli()), strings.Compare(a.node.ID, b.node.ID))
	})
	return all, true
}

// addMessage adds a message, and returns the size of its body. added is false for a record that is no message.
func (s *openCodeStorage) addMessage(n *archive.Node, raw []byte) (size int, added bool) {
	body, started := s.body(n, raw)
	if strings.HasSuffix(n.Role, "-switched") { // of the model or the mode
		s.log(n.Role, "", "", body, n.Created, n.At)
		return 0, false
	}
	for _, child := range started {
		if _, known := s.calls[child]; !known {
			s.calls[child] = n.ID
		}
	}
	n.Give(body)
	if n.Aside == "" {
		s.about.model = cmp.Or(n.Model, s.about.model)
	}
	s.add(*n)
	return len(body), true
}

// body returns the body of a message in the form of the database, and the sessions of the subagents that it started.
func (s *openCodeStorage) body(n *archive.Node, raw []byte) (body []byte, started []string) {
	own := func(raw []byte, keys ...string) []byte {
		return rawjson.RemoveFunc(raw, func(key string) bool { return slices.Contains(keys, key) })
	}
	if n.Role = rawjson.Str(rawjson.Get(raw, "role")); n.Role == "" { // a whole message
		n.Role = cmp.Or(rawjson.Str(rawjson.Get(raw, "type")), "unknown")
		model := rawjson.Get(raw, "model")
		n.Model = cmp.Or(rawjson.Str(rawjson.Get(model, "id")), rawjson.Str(rawjson.Get(model, "modelID")))
		return own(raw, "id", "sessionID"), nil
	}
	n.Model = rawjson.Str(rawjson.Get(raw, "modelID"))
	body = append(append([]byte(`{"info":`), own(raw, "id", "sessionID")...), `,"parts":[`...)
	first := true
	for _, id := range s.names("part", n.ID) {
		part := s.file("part", n.ID, id+".json")
		if !rawjson.IsObject(part) || int64(len(body)+len(part)) > s.in.MaxItem() {
			s.part.Skip(n.At, archive.Malformed("part %.64s is not a JSON object, or too large", id))
			continue
		}
		if !first {
			body = append(body, ',')
		}
		first = false
		body = append(body, own(part, "id", "sessionID", "messageID")...)
		if child := startedSession(part); child != "" {
			started = append(started, child)
		}
	}
	return append(body, "]}"...), started
}

// names returns the sorted names, without extension, of the JSON files in a folder of the storage.
func (s *openCodeStorage) names(folder, id string) (names []string) {
	if !isPlainName(id) {
		return nil
	}
	name := filepath.Join(folder, id)
	if info, err := s.root.Lstat(name); err != nil || !info.IsDir() {
		return nil // opening a pipe could block forever
	}
	dir, err := s.root.Open(name)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxStored)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && e.Type().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// file returns the content of a file of the storage, nil if it does not exist or is not JSON.
func (s *openCodeStorage) file(names ...string) []byte {
	for _, name := range names {
		if !isPlainName(name) {
			return nil
		}
	}
	name := filepath.Join(names...)
	if info, err := s.root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > s.in.MaxItem() {
		return nil
	}
	b, err := fs.ReadFile(s.root.FS(), filepath.ToSlash(name))
	if err != nil || rawjson.Check(b) != nil {
		return nil
	}
	return b[rawjson.SkipSpace(b, 0):]
}

// isPlainName reports whether a name has no path separators and is not a special name, so that it stays in its
// folder.
func isPlainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\:\x00")
}
