package archives

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/archive"
)

// threads reads the newer tables: messages with hashes and parents, and threads that point to them.
// Messages have no time, so they get that of the thread, and each thread has its own copies.
func (l *llmReader) threads(ctx context.Context) error {
	columns := l.db.list("threads", "id", "name", "tip_message_hash", "forked_from", "datetime_utc")
	return l.db.each(ctx, `SELECT `+columns+` FROM threads ORDER BY id`, nil, func(r row) error {
		l.items++
		at := archive.Position{File: l.in.Name, Item: l.items, Inside: "thread " + r.text("id")}
		c := &archive.Conversation{
			SourceID: r.text("id"), Title: r.text("name"), Created: parseTime(r.text("datetime_utc")),
			ForkedFrom: r.text("forked_from"), Current: r.text("tip_message_hash"),
		}
		turns := make(map[string]row)
		tips := []string{c.Current}
		if l.db.has("turns", "id", "thread_id", "tip_message_hash") {
			query := `SELECT ` + l.db.list("turns", "id", "tip_message_hash", "parent_message_hash", "model", "resolved_model", "options_json", "schema_id",
				"input_tokens", "output_tokens", "token_details", "duration_ms", "datetime_utc", "response_json") + ` FROM turns WHERE thread_id = ? ORDER BY id`
			err := l.db.each(ctx, query, []any{r["id"]}, func(turn row) error {
				tip := turn.text("tip_message_hash")
				turns[tip] = turn
				tips = append(tips, tip)
				return nil
			})
			if err != nil {
				return err
			}
		}
		done := make(map[string]bool)
		for _, tip := range tips {
			if err := l.chain(ctx, c, tip, done, turns, at); err != nil {
				if context.Cause(ctx) != nil {
					return context.Cause(ctx)
				}
				if !l.yield(nil, &archive.Damage{At: at, Err: err}) {
					return errStopped
				}
			}
		}
		if !done[c.Current] {
			c.Current = ""
		}
		return l.send(c)
	})
}

// chain adds the messages up to a tip that are not yet added.
func (l *llmReader) chain(ctx context.Context, c *archive.Conversation, tip string, done map[string]bool, turns map[string]row, at archive.Position) error {
	var missing []row
	seen := make(map[string]bool)
	for hash := tip; hash != "" && !done[hash]; {
		if seen[hash] {
			return fmt.Errorf("%w: message %s is its own ancestor", archive.ErrMalformed, hash)
		}
		seen[hash] = true
		var found row
		err := l.db.each(ctx, `SELECT `+l.db.list("messages", "hash", "parent_hash", "role", "provider_metadata")+` FROM messages WHERE hash = ?`, []any{hash}, func(r row) error {
			found = r
			return nil
		})
		if err != nil {
			return err
		}
		if found == nil {
			c.Repairs = append(c.Repairs, &archive.Damage{At: at, Err: fmt.Errorf("%w: message %s is missing; its successor begins a history", archive.ErrMalformed, hash)})
			break
		}
		missing = append(missing, found)
		hash = found.text("parent_hash")
	}
	slices.Reverse(missing)
	for i, r := range missing {
		n := archive.Node{ID: r.text("hash"), Role: r.text("role"), At: at}
		if parent := r.text("parent_hash"); i > 0 || done[parent] {
			n.Parent = parent
		} else {
			n.Root = true
		}
		if n.Role == "" {
			n.Role = "message"
		}
		more, err := l.parts(ctx, &n)
		if err != nil {
			return err
		}
		if v := kept(r["provider_metadata"], true); v != nil {
			more = append(more, field{"provider_metadata", v})
		}
		if turn := turns[n.ID]; turn != nil {
			n.Model, n.Created = turn.text("model"), parseTime(turn.text("datetime_utc"))
			for _, name := range []string{"id", "resolved_model", "duration_ms", "input_tokens", "output_tokens", "token_details", "schema_id", "options_json", "response_json"} {
				if v := kept(turn[name], name == "token_details" || name == "options_json" || name == "response_json"); v != nil {
					key := name
					if name == "id" {
						key = "turn_id"
					}
					more = append(more, field{key, v})
				}
			}
		}
		if len(more) > 0 {
			n.Metadata = appendJSON(nil, more)
		}
		done[n.ID] = true
		c.Nodes = append(c.Nodes, n)
	}
	return nil
}

// parts reads the content of a message: its text if that is all, else {"parts": [{type, …}]}. It
// returns further fields for the metadata.
func (l *llmReader) parts(ctx context.Context, n *archive.Node) (fields, error) {
	var parts []any
	var more fields
	query := `SELECT ` + l.db.list("parts", "id", "type", "tool_name", "text", "payload") + ` FROM parts WHERE message_hash = ? ORDER BY ` + l.db.list("parts", "position", "id")
	err := l.db.each(ctx, query, []any{n.ID}, func(r row) error {
		part := fields{{"type", r.text("type")}}
		var refs any
		if raw := r.bytes("payload"); len(raw) > 0 {
			v, err := decodeJSON(raw)
			if err != nil {
				return err
			}
			payload, _ := v.(fields)
			for _, f := range payload {
				switch f.key {
				case "type":
				case "text_ref":
					refs = f.value
				default:
					part = append(part, f)
				}
			}
		}
		if refs != nil {
			text, err := l.textOf(ctx, refs)
			if err != nil {
				return err
			}
			part = append(part, field{"text", text})
		}
		if r["text"] != nil {
			part = append(part, field{"text", r.text("text")})
		}
		if r.text("type") == "attachment" {
			if file, err := l.partAttachment(ctx, r["id"]); err != nil {
				return err
			} else if file != nil {
				n.Attachments = append(n.Attachments, *file)
				return nil
			}
		}
		parts = append(parts, part)
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch text, only := onlyText(parts); {
	case only:
		n.Body, n.Type = []byte(text), "text/plain"
	default:
		n.Body, n.Type = appendJSON(nil, fields{{"parts", parts}}), "application/json"
	}
	if n.Role == "tool" && len(parts) == 1 {
		n.Name = parts[0].(fields).text("name")
	}
	return more, nil
}

// onlyText returns the text of parts, if they are a single text.
func onlyText(parts []any) (string, bool) {
	switch len(parts) {
	case 0:
		return "", true
	case 1:
		f := parts[0].(fields)
		text, ok := f.get("text").(string)
		return text, ok && len(f) == 2 && f.text("type") == "text"
	}
	return "", false
}

// textOf joins a text that refers to fragments.
func (l *llmReader) textOf(ctx context.Context, refs any) (string, error) {
	list, _ := refs.([]any)
	text := ""
	for _, e := range list {
		f, _ := e.(fields)
		if literal, ok := f.get("literal").(string); ok {
			text += literal
			continue
		}
		for _, name := range []string{"fragment", "fragment_id", "id"} {
			if id := f.get(name); id != nil {
				s, err := l.fragment(ctx, string(appendJSON(nil, id)))
				if err != nil {
					return "", err
				}
				text += s
				break
			}
		}
	}
	return text, nil
}

func (l *llmReader) partAttachment(ctx context.Context, part any) (*archive.Attachment, error) {
	if !l.db.has("part_attachments", "part_id", "attachment_id") || !l.db.has("attachments", "id", "type", "path", "url", "content") {
		return nil, nil
	}
	var file *archive.Attachment
	err := l.db.each(ctx, `SELECT a.id, a.type, a.path, a.url, a.content FROM part_attachments p JOIN attachments a ON a.id = p.attachment_id WHERE p.part_id = ?`,
		[]any{part}, func(r row) error {
			file, _ = attachment(r)
			return nil
		})
	return file, err
}
