package archives

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/lineage/archive"
)

// llm reads the log of the llm tool: the older tables with responses, and the newer ones with a
// tree of messages and threads that point into it. A thread in both is read from the newer ones.
func llm() archive.Format {
	return archive.Format{
		Name: "llm",
		Detect: func(h archive.Head) bool {
			return mentions(h, "conversations", "responses") || mentions(h, "threads", "turns", "messages", "parts")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				db, done, err := openDatabase(ctx, in)
				if err != nil {
					yield(nil, whole(ctx, in, err))
					return
				}
				defer done()
				l := &llmReader{reader{database: db, in: in, yield: yield}, make(map[string]string)}
				tree := db.has("threads", "id", "tip_message_hash") && db.has("messages", "hash", "parent_hash", "role") && db.has("parts", "message_hash", "type")
				log := db.has("conversations", "id") && db.has("responses", "id", "prompt", "response", "conversation_id")
				if !tree && !log {
					err = fmt.Errorf("%w: no table responses or turns", archive.ErrMalformed)
				}
				if tree {
					err = l.threads(ctx)
				}
				if err == nil && log {
					err = l.responses(ctx, tree)
				}
				l.end(ctx, err)
			}
		},
	}
}

// withFragments returns a text after the fragments of its response, as sent to the model.
func (l *llmReader) withFragments(ctx context.Context, table, response, text string) (string, error) {
	if !l.has(table, "response_id", "fragment_id", "order") {
		return text, nil
	}
	var parts []string
	err := l.each(ctx, `SELECT `+l.list(table, "fragment_id")+` FROM `+table+` WHERE response_id = ? ORDER BY `+table+`."order"`, []any{response}, func(r row) error {
		s, err := l.fragment(ctx, r["fragment_id"])
		parts = append(parts, s)
		return err
	})
	if err != nil || len(parts) == 0 {
		return text, err
	}
	if text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n"), nil
}

// responses reads the older tables.
func (l *llmReader) responses(ctx context.Context, tree bool) error {
	query := `SELECT ` + l.list("responses", "id", "model", "resolved_model", "prompt", "system", "prompt_json", "options_json", "response", "response_json",
		"conversation_id", "duration_ms", "datetime_utc", "input_tokens", "output_tokens", "token_details", "schema_id") + ` FROM responses`
	if tree {
		query += ` WHERE conversation_id IS NULL OR conversation_id NOT IN (SELECT id FROM threads WHERE tip_message_hash IS NOT NULL)`
	}
	query += ` ORDER BY responses.conversation_id`
	if l.has("responses", "datetime_utc") {
		query += `, responses.datetime_utc`
	}
	var c *llmConversation
	err := l.eachItem(ctx, query+`, responses.id`, nil, func(r row) error {
		at := l.next("response " + r.text("id"))
		if err := l.takeRow(r); err != nil {
			return l.skip(ctx, at, err)
		}
		if id := r.text("conversation_id"); c == nil || id == "" || id != c.group {
			if c != nil {
				if err := c.finish(); err != nil {
					return err
				}
			}
			c = &llmConversation{partCollector: partCollector{Conversation: &archive.Conversation{SourceID: id}, r: &l.reader}, group: id}
			if id == "" {
				c.SourceID = r.text("id")
			}
		}
		if err := l.response(ctx, c, r, at); err != nil {
			if err := l.skip(ctx, at, err); err != nil {
				return err
			}
		}
		return c.flush()
	})
	if err == nil && c != nil {
		err = c.finish()
	}
	return err
}

// llmConversation is the conversation being read.
type llmConversation struct {
	partCollector
	group   string // conversation_id
	begun   bool   // its fields are set
	system  string // the system prompt in force
	follows string // the id of its last node
}

// about sets the fields of a conversation.
func (l *llmReader) about(ctx context.Context, c *llmConversation) error {
	if c.begun || c.group == "" {
		return nil
	}
	c.begun = true
	return l.each(ctx, `SELECT `+l.list("conversations", "id", "name", "model")+` FROM conversations WHERE id = ?`, []any{c.group}, func(r row) error {
		c.Title, c.Model = r.text("name"), r.text("model")
		return nil
	})
}

// response adds the messages of a request and its response, or none of them.
func (l *llmReader) response(ctx context.Context, c *llmConversation, r row, at archive.Position) error {
	if err := l.about(ctx, c); err != nil {
		return err
	}
	id := r.text("id")
	created := parseTime(r.text("datetime_utc"))
	var nodes []archive.Node
	follows := c.follows
	add := func(n archive.Node) {
		n.At, n.Created, n.Parent = at, created, follows
		follows = n.ID
		nodes = append(nodes, n)
	}
	system := c.system
	instructions, err := l.withFragments(ctx, "system_fragments", id, r.text("system"))
	if err != nil {
		return err
	}
	if instructions != "" && instructions != system {
		system = instructions
		add(archive.Node{ID: id + "/system", Role: "system", Body: []byte(instructions)})
	}
	if err := l.toolResults(ctx, id, add); err != nil {
		return err
	}
	prompt, err := l.prompt(ctx, r)
	if err != nil {
		return err
	}
	if prompt != nil {
		add(*prompt)
	}
	answer, err := l.answer(ctx, r)
	if err != nil {
		return err
	}
	add(*answer)
	if c.Created.IsZero() {
		c.Created = created
	}
	c.Updated, c.system, c.follows = created, system, follows
	for _, n := range nodes {
		c.add(n)
	}
	return nil
}

// prompt returns the prompt of a request, nil if it is empty.
func (l *llmReader) prompt(ctx context.Context, r row) (*archive.Node, error) {
	id := r.text("id")
	text, err := l.withFragments(ctx, "prompt_fragments", id, r.text("prompt"))
	if err != nil {
		return nil, err
	}
	n := &archive.Node{ID: id + "/prompt", Role: "user", Body: []byte(text)}
	if n.Attachments, n.Metadata, err = l.attachments(ctx, id); err != nil {
		return nil, err
	}
	if text == "" && len(n.Attachments) == 0 && n.Metadata == nil {
		return nil, nil
	}
	return n, nil
}

// answer returns the response to a request, with its calls of tools.
func (l *llmReader) answer(ctx context.Context, r row) (*archive.Node, error) {
	id := r.text("id")
	n := &archive.Node{ID: id, Role: "assistant", Model: r.text("model"), Body: []byte(r.text("response")), Type: "text/plain"}
	calls, err := l.toolCalls(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(calls) > 0 {
		var text any
		if r["response"] != nil && r.text("response") != "" {
			text = r.text("response")
		}
		n.Body, n.Type = appendJSON(nil, fields{{"content", text}, {"tool_calls", calls}}), "application/json"
	}
	var more fields
	for _, name := range []string{"resolved_model", "duration_ms", "input_tokens", "output_tokens", "token_details", "schema_id", "options_json", "prompt_json", "response_json"} {
		v, err := l.kept(r[name], strings.HasSuffix(name, "_json") || name == "token_details")
		if err != nil {
			return nil, err
		}
		if v != nil {
			more = append(more, field{name, v})
		}
	}
	if len(more) > 0 {
		n.Metadata = appendJSON(nil, more)
	}
	return n, nil
}

func (l *llmReader) toolCalls(ctx context.Context, response string) ([]any, error) {
	if !l.has("tool_calls", "response_id", "name", "arguments", "tool_call_id") {
		return nil, nil
	}
	var calls []any
	err := l.each(ctx, `SELECT `+l.list("tool_calls", "name", "arguments", "tool_call_id")+` FROM tool_calls WHERE response_id = ? ORDER BY tool_calls.id`, []any{response}, func(r row) error {
		calls = append(calls, fields{
			{"id", r.text("tool_call_id")}, {"type", "function"},
			{"function", fields{{"name", r.text("name")}, {"arguments", r.text("arguments")}}},
		})
		return nil
	})
	return calls, err
}

// toolResults adds the results of tools that were sent with a request.
func (l *llmReader) toolResults(ctx context.Context, response string, add func(archive.Node)) error {
	if !l.has("tool_results", "response_id", "name", "output", "tool_call_id") {
		return nil
	}
	return l.each(ctx, `SELECT `+l.list("tool_results", "id", "name", "output", "tool_call_id")+` FROM tool_results WHERE response_id = ? ORDER BY tool_results.id`, []any{response}, func(r row) error {
		n := archive.Node{ID: response + "/result-" + r.text("id"), Role: "tool", Name: r.text("name"), Body: []byte(r.text("output"))}
		if call := r.text("tool_call_id"); call != "" {
			n.Give(appendJSON(nil, fields{{"content", r.text("output")}, {"tool_call_id", call}}))
		}
		add(n)
		return nil
	})
}

// attachments returns the files of a prompt, and the locations of files that are not in the
// database.
func (l *llmReader) attachments(ctx context.Context, response string) ([]archive.Attachment, []byte, error) {
	if !l.has("prompt_attachments", "response_id", "attachment_id", "order") || !l.has("attachments", "id", "type", "path", "url", "content") {
		return nil, nil, nil
	}
	var files []archive.Attachment
	var elsewhere []any
	err := l.each(ctx, `SELECT `+l.list("attachments", "id", "type", "path", "url", "content")+` FROM prompt_attachments JOIN attachments ON attachments.id = attachment_id
		WHERE response_id = ? ORDER BY prompt_attachments."order"`, []any{response}, func(r row) error {
		file, place := attachment(r)
		if file != nil {
			files = append(files, *file)
		} else {
			elsewhere = append(elsewhere, place)
		}
		return nil
	})
	if err != nil || len(elsewhere) == 0 {
		return files, nil, err
	}
	return files, appendJSON(nil, fields{{"attachments", elsewhere}}), nil
}
