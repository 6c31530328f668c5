package agents

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// GooseLines reads sessions of Goose versions without a database: a file of JSON lines per session. Its first line
// describes the session and is rewritten with every message.
func GooseLines() archive.Format {
	return archive.Format{
		Name: "goose-jsonl", Grows: true, Bare: true,
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(1) {
				return rawjson.Has(line, "working_dir") && !rawjson.Has(line, "role") && (rawjson.Has(line, "message_count") || rawjson.Has(line, "description"))
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := gooseSession{sessionReader: newSessionReader(in, yield)}
				s.about.agent = "goose"
				if name := archive.BaseName(in.Name); name != "-" {
					s.name = strings.TrimSuffix(name, ".jsonl")
				}
				s.ending = func() { s.began("") }
				s.readLines(ctx, s.line)
			}
		},
	}
}

// gooseSession is the state of reading a session of Goose.
type gooseSession struct {
	sessionReader
	// name is that of the file: a time, or what a person has chosen. Other sessions may have the same.
	name string
}

// began sets the id of the session, with a mark of where and how it began.
func (s *gooseSession) began(kind string) {
	if s.id == "" && s.name != "" {
		s.id, s.local = s.name, archive.Mark(kind+" "+s.about.cwd)
	}
}

// line reads the header or a message.
func (s *gooseSession) line(raw []byte, at archive.Position) error {
	if !rawjson.Has(raw, "role") && rawjson.Has(raw, "working_dir") {
		s.about.cwd = cmp.Or(rawjson.Str(rawjson.Get(raw, "working_dir")), s.about.cwd)
		s.title = cmp.Or(rawjson.Str(rawjson.Get(raw, "description")), s.title)
		s.log("session", "", "", raw, s.part.Updated, at)
		return nil
	}
	n := archive.Node{At: at, ID: rawjson.Str(rawjson.Get(raw, "id")), Role: rawjson.Str(rawjson.Get(raw, "role")), Created: archive.ParseTime(rawjson.Get(raw, "created"))}
	if n.Role == "" || !rawjson.IsArray(rawjson.Get(raw, "content")) {
		s.log(cmp.Or(n.Role, "unknown"), "", "", raw, n.Created, at)
		return nil
	}
	s.began(cmp.Or(string(rawjson.Get(raw, "created")), string(raw)))
	n.Give(raw)
	s.link(&n, false)
	s.add(n)
	return nil
}
