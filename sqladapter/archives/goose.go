package archives

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// goose reads the database of Goose. When Goose compacts a session it writes the messages again under the same ids,
// and marks in their metadata which ones the model no longer gets.
func goose() archive.Format {
	return archive.Format{
		Name: "goose",
		Detect: func(h archive.Head) bool {
			return mentions(h, "sessions", "messages") && (containsWord(h.Bytes, "content_json") || containsWord(h.Bytes, "working_dir"))
		},
		Read: func(ctx context.Context, in *archive.Input) conversations {
			return readAgent(ctx, in, &agentDatabase{
				agent: "goose",
				sessions: []table{{"sessions", []string{"id", "working_dir"}, []string{
					"name", "description", "session_type", "created_at", "updated_at", "provider_name", "model_config_json", "project_id", "schedule_id", "goose_mode", "parent_session_id",
					"accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cache_read_tokens", "accumulated_cache_write_tokens", "accumulated_cost",
				}}},
				parent:  "parent_session_id",
				session: gooseSession,
				messages: []messageTable{{
					table: table{"messages", []string{"id", "session_id", "role", "content_json"}, []string{"message_id", "created_timestamp", "metadata_json"}},
					// Goose orders messages by insertion, as ids do.
					order: []string{"id"}, message: gooseMessage,
				}},
				more: gooseUsage,
			})
		},
	}
}

func gooseSession(ctx context.Context, s *agentSession, v row) error {
	s.Created, s.Updated = agentTime(v["created_at"]), agentTime(v["updated_at"])
	began := s.Created.Format(time.RFC3339Nano)
	if s.Created.IsZero() {
		var err error
		if began, err = gooseBeginning(ctx, s, v["id"]); err != nil {
			return err
		}
	}
	s.Local = archive.Mark(began + " " + v.text("working_dir")) // ids are counted by the day
	s.Title = cleanText([]byte(v.text("name")))
	if s.Title == "" {
		s.Title = cleanText([]byte(v.text("description")))
	}
	s.state(archive.KeyModel, gooseModel(v))
	s.state(archive.KeyProject, v.text("working_dir"))
	s.state("provider", v.text("provider_name"))
	if kind := v.text("session_type"); kind != "user" {
		s.state("sessionType", kind)
	}
	s.state("schedule", v.text("schedule_id"))
	s.model = gooseModel(v)
	if !s.r.has("usage_ledger", "session_id") { // of older versions, which state no more than the sum
		for _, c := range []string{"accumulated_input_tokens", "accumulated_output_tokens", "accumulated_cost"} {
			s.count(c, v[c])
		}
	}
	return nil
}

// gooseBeginning returns the first message of a session, as text.
func gooseBeginning(ctx context.Context, s *agentSession, id any) (text string, err error) {
	r := s.r
	if len(r.messages) == 0 {
		return "", nil
	}
	query := `SELECT ` + r.list("messages", "content_json", "created_timestamp") + ` FROM messages WHERE session_id = ? ORDER BY messages.id LIMIT 1`
	err = r.each(ctx, query, []any{id}, func(v row) error {
		text = v.text("created_timestamp") + " " + v.text("content_json")
		return nil
	})
	if isLimit(err) && r.stopped == nil { // it is reported with the messages
		err = nil
	}
	return text, err
}

func gooseModel(v row) string {
	config := v.bytes("model_config_json")
	if !rawjson.Valid(config) || !rawjson.IsObject(config) {
		return ""
	}
	return rawjson.Str(rawjson.Get(config, "model_name"))
}

// gooseMessage reads a message. Its body has the members of Goose's own export that do not change.
func gooseMessage(_ context.Context, s *agentSession, v row) (n archive.Node, err error) {
	content := v.bytes("content_json")
	if rawjson.Check(content) != nil || !rawjson.IsArray(content) {
		return n, fmt.Errorf("%w: its content is not a JSON list", archive.ErrMalformed)
	}
	// Versions of Goose before message ids: newer versions give these messages the same ids.
	n = archive.Node{ID: cmp.Or(v.text("message_id"), "msg_"+v.text("session_id")+"_"+v.text("id")), Role: v.text("role"), Created: agentTime(v["created_timestamp"])}
	if n.Role == "assistant" {
		n.Model = s.model
	}
	body := append(append([]byte(`{"role":`), rawjson.Quote(n.Role)...), `,"content":`...)
	n.Give(append(append(body, content...), '}'))
	n.Metadata = gooseMetadata(v.bytes("metadata_json"))
	return n, nil
}

// gooseMetadata returns the metadata of a message without the flag that compaction changes (whether the model still
// gets the message), and without the default that the user sees it.
func gooseMetadata(raw []byte) []byte {
	if !rawjson.Valid(raw) || !rawjson.IsObject(raw) {
		return nil
	}
	left := rawjson.RemoveFunc(raw, func(key string) bool {
		return key == "agentVisible" || key == "userVisible" && rawjson.IsTrue(rawjson.Get(raw, key))
	})
	for range rawjson.Members(left) {
		return left
	}
	return nil
}

// gooseUsage reads what the answers of a session cost. Newer versions have one row for each answer.
func gooseUsage(ctx context.Context, s *agentSession, id any) error {
	r := s.r
	ledger := table{"usage_ledger", []string{"id", "session_id"}, []string{
		"created_timestamp", "model", "input_tokens", "output_tokens", "total_tokens", "cache_read_tokens", "cache_write_tokens", "cost", "cost_source", "is_compaction",
	}}
	if !ledger.in(r.database) {
		return nil
	}
	query := `SELECT ` + r.columns(&ledger) + ` FROM usage_ledger WHERE session_id = ? ORDER BY usage_ledger.id`
	return r.eachItem(ctx, query, []any{id}, func(v row) error {
		at := r.next("usage " + v.text("id"))
		if err := r.takeRow(v); err != nil {
			return r.skip(ctx, at, err)
		}
		s.keep(ledger.name, v)
		answer := fields{{"usage_id", "goose:" + strings.Join([]string{v.text("session_id"), v.text("id"), v.text("created_timestamp")}, ":")}}
		for _, c := range ledger.columns {
			if n := counted(v[c]); n != nil {
				answer = append(answer, field{c, n})
			} else if text := v.text(c); text != "" {
				answer = append(answer, field{c, cleanText([]byte(text))})
			}
		}
		s.log("usage "+v.text("id"), "usage_ledger", appendJSON(nil, answer), agentTime(v["created_timestamp"]), at)
		return s.flush()
	})
}
