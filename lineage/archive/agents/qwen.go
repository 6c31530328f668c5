package agents

import (
	"cmp"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Qwen reads sessions of Qwen Code: a file of JSON lines per session, with records that form a tree.
func Qwen() archive.Format {
	return archive.Format{
		Name: "qwen", Grows: true,
		Tried: "published sessions of Qwen Code 0.21.6; rewinds and forks: the program's source",
		Detect: func(h archive.Head) bool {
			for _, line := range h.Lines(20) {
				if isQwenLine(line) {
					return true
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				s := qwenSession{sessionReader: newSessionReader(in, yield)}
				s.about.agent, s.known = "qwen", make(map[string]bool)
				s.spoken = true // the program writes telemetry also when nobody says anything
				s.readLines(ctx, s.line)
			}
		},
	}
}

// isQwenLine reports whether a line, possibly truncated, is a record of Qwen Code. Lines of Claude Code have the same
// ids, but content instead of parts.
func isQwenLine(line []byte) bool {
	return rawjson.Has(line, "uuid", "sessionId", "type") && (rawjson.Has(rawjson.Get(line, "message"), "parts") || rawjson.Has(line, "systemPayload"))
}

// qwenSession is the state of reading a session of Qwen Code.
type qwenSession struct {
	sessionReader
}

// line reads a record.
func (s *qwenSession) line(raw []byte, at archive.Position) error {
	r := lineRecord{Node: archive.Node{At: at}}
	session := ""
	for m := range rawjson.Members(raw) {
		if r.take(m, uuidKeys) {
			continue
		}
		switch m.Key {
		case "sessionId":
			session = rawjson.Str(m.Value)
		case "model":
			r.Model = rawjson.Str(m.Value)
		case "forkedFrom":
			s.part.ForkedFrom = cmp.Or(rawjson.Str(rawjson.Get(m.Value, "sessionId")), s.part.ForkedFrom)
			if rawjson.Str(rawjson.Get(m.Value, "messageUuid")) != rawjson.Str(rawjson.Get(raw, "uuid")) {
				r.rest.Add(m) // if it is the own id, the copy of a message would differ from the message
			}
		case "cwd":
			s.about.cwd = cmp.Or(s.about.cwd, rawjson.Str(m.Value))
			r.rest.Add(m)
		case "gitBranch":
			s.about.gitBranch = cmp.Or(s.about.gitBranch, rawjson.Str(m.Value))
			r.rest.Add(m)
		case "version":
			s.about.version = cmp.Or(rawjson.Str(m.Value), s.about.version)
			r.rest.Add(m)
		default:
			r.rest.Add(m)
		}
	}
	s.id = cmp.Or(s.id, session)
	switch {
	case !rawjson.IsObject(r.message), r.kind == "system":
		if title := rawjson.Str(rawjson.Get(rawjson.Get(raw, "systemPayload"), "customTitle")); title != "" {
			s.title = title
		}
		s.logRecord(&r, raw)
		s.part.Current = s.resolve(r.ID)
		return nil
	case r.kind == "tool_result":
		r.Role = "tool"
	default:
		r.Role = cmp.Or(r.kind, "unknown")
	}
	r.Give(r.message)
	r.Metadata = r.rest.Bytes()
	s.about.model = cmp.Or(r.Model, s.about.model)
	s.link(&r.Node, r.hasParent)
	s.add(r.Node)
	s.part.Current = r.ID // Qwen Code continues the last record
	return nil
}
