package archives

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// crush reads the database of Crush, which is in the project's folder, also from when Crush was named OpenCode. A
// subagent's session is named after the message and the tool call that started it, in older versions after the call.
func crush() archive.Format {
	return archive.Format{
		Name:  "crush",
		Tried: "a database that Crush wrote, built from its source of August 2026, and published ones of 2025, also under the name OpenCode",
		Detect: func(h archive.Head) bool {
			named := h.Name == "crush.db" && h.IsSQLite()
			return named || mentions(h, "sessions", "messages") && containsWord(h.Bytes, "parent_session_id") && containsWord(h.Bytes, "completion_tokens")
		},
		Read: func(ctx context.Context, in *archive.Input) conversations {
			return readAgent(ctx, in, &agentDatabase{
				agent:    "crush",
				sessions: []table{{"sessions", []string{"id"}, []string{"parent_session_id", "title", "prompt_tokens", "completion_tokens", "cost", "created_at", "updated_at"}}},
				parent:   "parent_session_id",
				session:  crushSession,
				messages: []messageTable{{
					table: table{"messages", []string{"id", "session_id", "role", "parts"}, []string{"model", "provider", "created_at", "is_summary_message"}},
					// Times have a resolution of seconds; rowid orders messages of the same second.
					order: []string{"created_at", "rowid"}, message: crushMessage,
				}},
			})
		},
	}
}

func crushSession(_ context.Context, s *agentSession, v row) error {
	s.Created, s.Updated = agentTime(v["created_at"]), agentTime(v["updated_at"])
	if title := v.text("title"); title != "Untitled Session" && title != "New Session" {
		s.Title = cleanText([]byte(title))
	}
	s.count("cost", v["cost"]) // of the whole session: Crush states no more
	return nil
}

// crushMessage reads a message. Its body is an object with the columns of the row.
func crushMessage(_ context.Context, s *agentSession, v row) (n archive.Node, err error) {
	parts := v.bytes("parts")
	if rawjson.Check(parts) != nil || !rawjson.IsArray(parts) {
		return n, fmt.Errorf("%w: its parts are not a JSON list", archive.ErrMalformed)
	}
	n = archive.Node{ID: v.text("id"), Role: v.text("role"), Model: cleanText([]byte(v.text("model"))), Created: agentTime(v["created_at"])}
	body := append(append([]byte(`{"role":`), rawjson.Quote(n.Role)...), `,"parts":`...)
	body = append(body, parts...)
	if provider := v.text("provider"); provider != "" {
		body = append(append(body, `,"provider":`...), rawjson.Quote(provider)...)
	}
	if summary, _ := v["is_summary_message"].(int64); summary != 0 {
		body = append(body, `,"is_summary_message":true`...)
	}
	for part := range rawjson.Elements(parts) {
		if rawjson.Str(rawjson.Get(part, "type")) == "tool_call" {
			call := rawjson.Str(rawjson.Get(rawjson.Get(part, "data"), "id"))
			s.starts(n.ID + "$$" + call)
			s.starts(call)
		}
	}
	n.Give(append(body, '}'))
	return n, nil
}
