package agents

import (
	"cmp"
	"context"
	"iter"
	"path"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Antigravity reads sessions of Antigravity. A session is a file with one step per line. The name of its folder is
// the session id.
func Antigravity() archive.Format {
	return archive.Format{
		Name: "antigravity", Grows: true,
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				return rawjson.Has(line, "step_index", "source", "type")
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := antigravitySession{session: newSession(in, yield)}
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

// antigravitySession is the state of reading a session of Antigravity.
type antigravitySession struct {
	session
}

// line reads a step.
func (s *antigravitySession) line(raw []byte, at archive.Position) error {
	kind, source := rawjson.Str(rawjson.Get(raw, "type")), rawjson.Str(rawjson.Get(raw, "source"))
	n := archive.Node{At: at, Created: archive.ParseTime(rawjson.Get(raw, "created_at")), Model: rawjson.Str(rawjson.Get(raw, "model"))}
	switch {
	case kind == "USER_INPUT":
		n.Role = "user"
		s.title = cmp.Or(s.title, antigravityTitle(rawjson.Str(rawjson.Get(raw, "content"))))
	case kind == "PLANNER_RESPONSE":
		n.Role = "assistant"
		s.about.model = cmp.Or(n.Model, s.about.model)
	case source == "MODEL", kind == "TOOL_RESPONSE": // what a tool did has its name as the type
		n.Role, n.Name = "tool", strings.ToLower(kind)
	default: // such as checkpoints and messages of the system
		s.log(kind, "", "", raw, n.Created, at)
		return nil
	}
	if index := rawjson.Get(raw, "step_index"); index != nil {
		n.ID = "step " + string(index)
	}
	n.Give(raw)
	s.link(&n, false)
	s.add(n)
	return nil
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
