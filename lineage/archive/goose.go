package archive

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// gooseLines reads sessions of Goose from before it had a database: a file of JSON lines per session, the first of which is about the
// session and is written again with every message.
func gooseLines() Format {
	return Format{
		Name: "goose-jsonl", Grows: true,
		Detect: func(h Head) bool {
			for _, line := range h.lines(1) {
				return has(line, "working_dir") && !has(line, "role") && (has(line, "message_count") || has(line, "description"))
			}
			return false
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return func(yield func(*Conversation, error) bool) {
				s := gooseSession{session: newSession(in, yield)}
				s.about.agent = "goose"
				if name := baseName(in.Name); name != "-" {
					s.id = strings.TrimSuffix(name, ".jsonl")
				}
				s.readLines(ctx, s.line)
			}
		},
	}
}

// gooseSession is a session of Goose while it is read.
type gooseSession struct {
	session
}

// line reads the header or a message.
func (s *gooseSession) line(raw []byte, at Position) error {
	if !has(raw, "role") && has(raw, "working_dir") {
		s.about.cwd = cmp.Or(rawjson.Str(rawjson.Get(raw, "working_dir")), s.about.cwd)
		s.title = cmp.Or(rawjson.Str(rawjson.Get(raw, "description")), s.title)
		s.log("session", "", "", raw, s.part.Updated, at)
		return nil
	}
	n := Node{At: at, ID: rawjson.Str(rawjson.Get(raw, "id")), Role: rawjson.Str(rawjson.Get(raw, "role")), Created: parseTime(rawjson.Get(raw, "created"))}
	if n.Role == "" || !rawjson.IsArray(rawjson.Get(raw, "content")) {
		s.log(cmp.Or(n.Role, "unknown"), "", "", raw, n.Created, at)
		return nil
	}
	n.Give(raw)
	s.link(&n, false)
	s.add(n)
	return nil
}
