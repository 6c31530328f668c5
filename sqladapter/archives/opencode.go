package archives

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// openCode reads the database of OpenCode: sessions, their messages, and the parts of these. A session
// with a parent is that of a subagent.
func openCode() archive.Format {
	return archive.Format{
		Name:   "opencode",
		Tried:  "a published database of OpenCode 1.18.13",
		Detect: isOpenCode,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				db, done, err := openDatabase(ctx, in)
				if err != nil {
					yield(nil, whole(ctx, in, err))
					return
				}
				defer done()
				r := openCodeReader{reader{database: db, in: in, yield: yield}}
				if !db.has("session", "id", "parent_id") || !db.has("message", "id", "session_id", "data") || !db.has("part", "id", "message_id", "data") {
					r.end(ctx, fmt.Errorf("%w: no tables of sessions, messages and parts", archive.ErrMalformed))
					return
				}
				r.end(ctx, r.sessions(ctx))
			}
		},
	}
}

// isOpenCode reports whether a head is that of a database of OpenCode. There are many tables, so the first pages
// may lack those that are read, and as long as the program runs they can be only in the log beside it: then
// the name tells.
func isOpenCode(h archive.Head) bool {
	named := strings.HasPrefix(h.Name, "opencode") && strings.HasSuffix(h.Name, ".db") && bytes.HasPrefix(h.Bytes, magic)
	return (named || mentions(h, "session", "message", "part")) && !langGraph().Detect(h) && !llm().Detect(h)
}

type openCodeReader struct{ reader }

// openCodeSession is a session being read.
type openCodeSession struct {
	part
	last string
	// calls maps the session of a subagent to the message that started it.
	calls map[string]string
}

// sessions reads the sessions that people began.
func (r *openCodeReader) sessions(ctx context.Context) error {
	query := `SELECT ` + r.list("session", "id", "directory", "title", "version", "model", "slug", "agent", "cost", "time_created", "time_updated") + ` FROM session
		WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM session) ORDER BY session.id`
	return r.eachItem(ctx, query, nil, func(v row) error {
		id := v.text("id")
		at := r.next("session " + id)
		if err := r.takeRow(v); err != nil {
			return r.skip(ctx, at, err)
		}
		s := openCodeSession{part: part{Conversation: &archive.Conversation{SourceID: id}, r: &r.reader}, calls: make(map[string]string)}
		s.Created, s.Updated = openCodeTime(v["time_created"]), openCodeTime(v["time_updated"])
		if title := v.text("title"); !strings.HasPrefix(title, "New session - ") { // what it has before the program finds one
			s.Title = title
		}
		model := v.text("model")
		if rawjson.Check([]byte(model)) == nil && rawjson.IsObject([]byte(model)) {
			model = rawjson.Str(rawjson.Get([]byte(model), "id"))
		}
		about := fields{{archive.KeyAgent, "opencode"}}
		for _, f := range []struct{ key, value string }{
			{archive.KeyVersion, v.text("version")}, {archive.KeyModel, model}, {archive.KeyProject, v.text("directory")}, {"slug", v.text("slug")}, {"mode", v.text("agent")},
		} {
			if f.value != "" {
				about = append(about, field{f.key, cleanText([]byte(f.value))})
			}
		}
		s.Metadata = appendJSON(nil, about)
		if err := r.messages(ctx, &s, id, ""); err != nil {
			return err
		}
		if err := r.subagents(ctx, &s, id, 0); err != nil {
			return err
		}
		return s.finish()
	})
}

// maxSubagents limits how deeply subagents of subagents are read.
const maxSubagents = 16

// subagents reads the sessions below one.
func (r *openCodeReader) subagents(ctx context.Context, s *openCodeSession, parent string, depth int) error {
	if depth == maxSubagents {
		return nil
	}
	var ids []string
	r.begin()
	err := r.each(ctx, `SELECT `+r.list("session", "id")+` FROM session WHERE parent_id = ? ORDER BY session.id`, []any{parent}, func(v row) error {
		ids = append(ids, v.text("id"))
		return nil
	})
	for _, id := range ids {
		if err == nil {
			err = r.messages(ctx, s, id, "agent "+id)
		}
		if err == nil {
			err = r.subagents(ctx, s, id, depth+1)
		}
	}
	return err
}

// messages reads the messages of a session.
func (r *openCodeReader) messages(ctx context.Context, s *openCodeSession, session, aside string) error {
	s.last = ""
	order := "message.id"
	if r.has("message", "time_created") {
		order = "message.time_created, message.id"
	}
	query := `SELECT ` + r.list("message", "id", "data", "time_created") + ` FROM message WHERE session_id = ? ORDER BY ` + order
	return r.eachItem(ctx, query, []any{session}, func(v row) error {
		at := r.next("message " + v.text("id"))
		if err := r.takeRow(v); err != nil {
			return r.skip(ctx, at, err)
		}
		if err := r.message(ctx, s, v, aside, at); err != nil {
			if err := r.skip(ctx, at, err); err != nil {
				return err
			}
		}
		return s.flush()
	})
}

// message reads a message. Its body has the form in which OpenCode exports it: its data as "info", and the
// data of its parts.
func (r *openCodeReader) message(ctx context.Context, s *openCodeSession, v row, aside string, at archive.Position) error {
	info := v.bytes("data")
	if rawjson.Check(info) != nil || !rawjson.IsObject(info) {
		return fmt.Errorf("%w: its data is not a JSON object", archive.ErrMalformed)
	}
	body := append([]byte(`{"info":`), info...)
	body = append(body, `,"parts":[`...)
	n, agents := 0, []string(nil)
	err := r.each(ctx, `SELECT `+r.list("part", "id", "data")+` FROM part WHERE message_id = ? ORDER BY part.id`, []any{v["id"]}, func(p row) error {
		data := p.bytes("data")
		if rawjson.Check(data) != nil {
			return fmt.Errorf("%w: the data of part %.64s is not JSON", archive.ErrMalformed, p.text("id"))
		}
		if err := r.item.object(); err != nil {
			return err
		}
		if n++; n > 1 {
			body = append(body, ',')
		}
		body = append(body, data...)
		if child := rawjson.Str(rawjson.Get(rawjson.Get(rawjson.Get(data, "state"), "metadata"), "sessionId")); child != "" {
			agents = append(agents, child)
		}
		return nil
	})
	if err != nil {
		return err
	}
	id := v.text("id")
	is := archive.Node{ID: id, Parent: s.last, Role: rawjson.Str(rawjson.Get(info, "role")), Created: openCodeTime(v["time_created"]), Aside: aside, At: at}
	if is.Role == "" {
		is.Role = "unknown"
	}
	if is.Role == "assistant" {
		is.Model = rawjson.Str(rawjson.Get(info, "modelID"))
	}
	if s.last == "" {
		is.Parent = s.calls[strings.TrimPrefix(aside, "agent ")]
		is.Root = is.Parent == ""
	}
	is.Give(append(body, "]}"...))
	for _, child := range agents {
		if _, known := s.calls[child]; !known && aside == "" {
			s.calls[child] = id
		}
	}
	s.last = id
	s.add(is)
	return nil
}

// openCodeTime returns a time in milliseconds.
func openCodeTime(v any) time.Time {
	ms, ok := v.(int64)
	if !ok || ms <= 0 || ms > 253402300799999 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
