package archives

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// openCode reads the database of OpenCode: sessions, messages, and the parts of messages. Version 2 stores whole
// messages in another table and leaves the old rows in place.
func openCode() archive.Format {
	return archive.Format{
		Name:   "opencode",
		Tried:  "databases of OpenCode 1.18.13 and 1.18.33; messages of version 2: the program's schema",
		Detect: isOpenCode,
		Rows:   true,
		Read: func(ctx context.Context, in *archive.Input) conversations {
			return readAgent(ctx, in, &agentDatabase{
				agent:    "opencode",
				rows:     true,
				sessions: []table{openCodeSessions("session_v2"), openCodeSessions("session")},
				parent:   "parent_id",
				session:  openCodeSession,
				messages: []messageTable{
					{table: table{"session_message", []string{"id", "session_id", "type", "data"}, []string{"time_created", "time_updated"}}, order: []string{"seq", "time_created", "id"}, message: openCodeWhole},
					{table: table{"message", []string{"id", "session_id", "data"}, []string{"time_created", "time_updated"}}, order: []string{"time_created", "id"}, message: openCodeMessage},
				},
			})
		},
	}
}

func openCodeSessions(name string) table {
	return table{name, []string{"id"}, []string{"parent_id", "directory", "title", "version", "model", "slug", "agent", "cost", "time_created", "time_updated"}}
}

// isOpenCode reports whether a file is a database of OpenCode, by the names of its tables in the first pages or by its own name.
// The pages may lack the names: there are many tables, and while the program runs, all may be in the write-ahead log. The name of
// the file does not prove it: Crush was named OpenCode before, and has other tables.
func isOpenCode(h archive.Head) bool {
	named := strings.HasPrefix(h.Name, "opencode") && strings.HasSuffix(h.Name, ".db") && h.IsSQLite()
	return (named || mentions(h, "session", "message", "part") || mentions(h, "session_message")) && !langGraph().Detect(h) && !llm().Detect(h) && !crush().Detect(h)
}

func openCodeSession(_ context.Context, s *agentSession, v row) error {
	s.Created, s.Updated = agentTime(v["time_created"]), agentTime(v["time_updated"])
	if title := v.text("title"); !strings.HasPrefix(title, "New session - ") { // what it has before the program finds one
		s.Title = title
	}
	model := v.text("model")
	if rawjson.Check([]byte(model)) == nil && rawjson.IsObject([]byte(model)) {
		model = rawjson.Str(rawjson.Get([]byte(model), "id"))
	}
	s.state(archive.KeyVersion, v.text("version"))
	s.state(archive.KeyModel, model)
	s.state(archive.KeyProject, v.text("directory"))
	s.state("slug", v.text("slug"))
	s.state("mode", v.text("agent"))
	return nil
}

// openCodeMessage reads a message. Its body is in the form of OpenCode's export: its data as "info", and the data of
// its parts.
func openCodeMessage(ctx context.Context, s *agentSession, v row) (node archive.Node, err error) {
	r := s.r
	info := v.bytes("data")
	if rawjson.Check(info) != nil || !rawjson.IsObject(info) {
		return node, fmt.Errorf("%w: its data is not a JSON object", archive.ErrMalformed)
	}
	parts := table{"part", []string{"id", "message_id", "data"}, []string{"time_updated"}}
	if !parts.in(r.database) {
		return node, fmt.Errorf("%w: no table of parts", archive.ErrMalformed)
	}
	body := append([]byte(`{"info":`), info...)
	body = append(body, `,"parts":[`...)
	n := 0
	changed := agentTime(v["time_updated"])
	err = r.each(ctx, `SELECT `+r.columns(&parts)+` FROM part WHERE message_id = ? ORDER BY part.id`, []any{v["id"]}, func(p row) error {
		s.keep("part", p)
		data := p.bytes("data")
		if rawjson.Check(data) != nil {
			return fmt.Errorf("%w: the data of part %.64s is not JSON", archive.ErrMalformed, p.text("id"))
		}
		if err := r.item.object(); err != nil {
			return err
		}
		if at := agentTime(p["time_updated"]); at.After(changed) {
			changed = at
		}
		if n++; n > 1 {
			body = append(body, ',')
		}
		body = append(body, data...)
		s.starts(rawjson.Str(rawjson.Get(rawjson.Get(rawjson.Get(data, "state"), "metadata"), "sessionId")))
		return nil
	})
	if err != nil {
		return node, err
	}
	node = archive.Node{ID: v.text("id"), Role: rawjson.Str(rawjson.Get(info, "role")), Created: agentTime(v["time_created"])}
	if node.Role == "assistant" {
		node.Model = rawjson.Str(rawjson.Get(info, "modelID"))
	}
	if node.Role != "assistant" || !isDone(info) { // parts of a prompt come one after the other, and then an answer
		s.writing(changed)
	}
	node.Give(append(body, "]}"...))
	return node, nil
}

// isDone reports whether an answer is complete or has failed.
func isDone(info []byte) bool {
	return !rawjson.IsNull(rawjson.Get(rawjson.Get(info, "time"), "completed")) || !rawjson.IsNull(rawjson.Get(info, "error"))
}

// openCodeWhole reads a message of version 2. Its body is the data column with the type added.
func openCodeWhole(_ context.Context, s *agentSession, v row) (n archive.Node, err error) {
	data := v.bytes("data")
	if rawjson.Check(data) != nil || !rawjson.IsObject(data) {
		return n, fmt.Errorf("%w: its data is not a JSON object", archive.ErrMalformed)
	}
	kind := v.text("type")
	if rawjson.Get(data, "type") == nil {
		data = rawjson.Set(data, []byte(`"type"`), rawjson.Quote(kind))
	}
	n = archive.Node{ID: v.text("id"), Role: kind, Created: agentTime(v["time_created"])}
	switch kind {
	case "assistant":
		if !isDone(data) {
			s.writing(agentTime(v["time_updated"]))
		}
		model := rawjson.Get(data, "model")
		n.Model = cmp.Or(rawjson.Str(rawjson.Get(model, "id")), rawjson.Str(rawjson.Get(model, "modelID")))
		for part := range rawjson.Elements(rawjson.Get(data, "content")) {
			s.starts(rawjson.Str(rawjson.Get(rawjson.Get(rawjson.Get(part, "state"), "structured"), "sessionID")))
		}
	case "user", "system":
	case "synthetic", "shell", "compaction": // what the program says in place of the user
	default: // such as a change of the model
		s.log(n.ID, kind, data, n.Created, s.at)
		return archive.Node{}, nil
	}
	n.Give(data)
	return n, nil
}
